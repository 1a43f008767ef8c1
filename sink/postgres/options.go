// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Options say where a sink is and how to write to it.
type Options struct {
	Settings

	// URL is the server's address and the database: postgres://host:5432/database. The URL has no
	// credentials and no query. If the URL names no database, PostgreSQL uses the database with the
	// name of the user.
	URL string
	// Index is the name of a collection's table; {collection} is replaced by the collection's name.
	// Without {collection}, Index is one table for one collection. Empty means "{collection}".
	Index string
	// Collections are the collections that are known to be written to this sink. Prepare creates
	// their tables.
	Collections []event.Collection
	// BulkDocuments and BulkBytes limit one statement. A document larger than BulkBytes is sent
	// alone. 0 means 500 documents, or 5 MB.
	BulkDocuments int
	BulkBytes     int64
	// Login returns the user and the password of a connection. If Login is nil, the user and the
	// password come from User and the environment: PGUSER, PGPASSWORD and the password file.
	Login sink.Login
	// Application is the name of this program in the server's list of connections. Empty means
	// "lull".
	Application string
}

// Sink writes documents to PostgreSQL and reads them. A Sink is safe for concurrent use.
type Sink struct {
	Options

	names  sink.Names
	config *pgconn.Config
	pool   pool
}

var (
	_ sink.Sink      = (*Sink)(nil)
	_ sink.Reader    = (*Sink)(nil)
	_ sink.Auditor   = (*Sink)(nil)
	_ sink.Marker    = (*Sink)(nil)
	_ sink.Sampler   = (*Sink)(nil)
	_ sink.Generator = (*Sink)(nil)
	_ sink.Preparer  = (*Sink)(nil)
)

// New checks the options and returns a Sink. New does not connect to the server. Close the sink
// after use.
func New(o Options) (*Sink, error) {
	o.Schema = cmp.Or(o.Schema, "public")
	o.Language = cmp.Or(o.Language, "simple")
	o.RememberDeletes = cmp.Or(o.RememberDeletes, setting.Day)
	o.Index = cmp.Or(o.Index, sink.Placeholder)
	o.Application = cmp.Or(o.Application, "lull")
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	names, err := sink.NewNames(o.Index, o.Collections)
	if err != nil {
		return nil, err
	}
	s := &Sink{Options: o, names: names, config: config}
	s.pool = newPool(s.connect)
	return s, nil
}

// config returns the configuration of connections. The errors of this method never quote the URL,
// because the URL might contain a password.
func (o *Options) config() (*pgconn.Config, error) {
	u, err := exchange.ParseURL(o.URL, "postgres://host:port/database", "postgres", "postgresql")
	if err != nil {
		return nil, err
	}
	u.RawQuery = "sslmode=disable" // overrides the environment; TLSConfig is set below
	c, err := pgconn.ParseConfig(u.String())
	if err != nil {
		return nil, errors.New("sink url: this is not an address of PostgreSQL, or the environment's PG variables are " +
			"invalid")
	}
	c.Fallbacks = nil
	c.User = cmp.Or(o.User, c.User)
	c.DialFunc = exchange.Dial
	c.ConnectTimeout = exchange.DialTimeout
	c.RuntimeParams["application_name"] = o.Application
	c.RuntimeParams["client_encoding"] = "UTF8"
	if o.TLS != tlsOff {
		if c.TLSConfig, err = o.tlsConfig(u.Hostname()); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (o *Options) tlsConfig(host string) (*tls.Config, error) {
	c := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if o.CAFile == "" {
		return c, nil
	}
	text, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("caFile: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("caFile: %s contains no PEM certificate", o.CAFile)
	}
	return c, nil
}

// loginError says that the sink did not try to connect, because it got no credentials.
type loginError struct{ err error }

func (e *loginError) Error() string { return e.err.Error() }
func (e *loginError) Unwrap() error { return e.err }

// connect makes a connection with the current credentials.
func (s *Sink) connect(ctx context.Context) (*pgconn.PgConn, error) {
	c := s.config
	if s.Login != nil {
		c = c.Copy()
		user, password, err := s.Login(ctx, net.JoinHostPort(c.Host, fmt.Sprint(c.Port)), c.User)
		if err != nil {
			return nil, &loginError{err}
		}
		c.User, c.Password = user, password
	}
	return pgconn.ConnectConfig(ctx, c)
}

// Close closes the connections.
func (s *Sink) Close() error {
	s.pool.close()
	return nil
}

// closeTimeout is how long closing a connection may take.
const closeTimeout = time.Second
