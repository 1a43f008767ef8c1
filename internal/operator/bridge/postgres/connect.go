// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	lull "github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/operator/bridge"
	"github.com/lullhq/lull/internal/seam/backoff"
)

// Database is a database whose tables a bridge sends. The zero Database is not ready: see [Parse].
type Database struct {
	Slot, Publication string
	// Collections are the collections of tables by their names, such as public.pages. A table that
	// is not in it has the collection of its name without the schema.
	Collections map[string]string
	// Prefetch is how many rows may be unconfirmed. At most so many are in memory.
	Prefetch int
	Log      *slog.Logger

	config *pgconn.Config
}

const (
	// dialTimeout bounds connecting, and each answer until the session is open.
	dialTimeout = 15 * time.Second
	// mostBytes is how many bytes of unconfirmed rows are in memory, and one row more.
	mostBytes = 64 << 20
	// leastServer is the first version of PostgreSQL whose catalog has a publication's columns.
	leastServer = 15
)

// Parse reads an address such as postgres://lull@db.example.org/shop, or the form "host=...
// user=...". What it does not contain comes from the variables of libpq, such as PGHOST, PGPASSWORD
// and PGPASSFILE. Errors contain no password.
func (d *Database) Parse(address string) error {
	c, err := pgconn.ParseConfig(address)
	if err != nil {
		return err
	}
	c.ConnectTimeout = dialTimeout
	for name, value := range map[string]string{
		"application_name": "lull bridge", "client_encoding": "UTF8", "DateStyle": "ISO, YMD", "TimeZone": "UTC",
		"IntervalStyle": "iso_8601", "bytea_output": "hex", "extra_float_digits": "1", "statement_timeout": "0",
		"idle_in_transaction_session_timeout": "0", "lc_monetary": "C",
		"lock_timeout": "3s",
	} {
		c.RuntimeParams[name] = value
	}
	d.config = c
	return nil
}

// connect opens a connection, for replication or for queries.
func (d *Database) connect(ctx context.Context, replication bool) (*pgconn.PgConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c := d.config.Copy()
	if replication {
		c.RuntimeParams["replication"] = "database"
	}
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err != nil {
		return nil, explain("connect to PostgreSQL", err)
	}
	return conn, nil
}

// catalog returns the catalog over a connection.
func (d *Database) catalog(conn *pgconn.PgConn) *catalog {
	return &catalog{
		conn: conn, publication: d.Publication, collections: d.Collections, encoders: map[uint32]encoder{},
	}
}

// explain adds what the bridge was doing, and how to fix the error. An error that needs an operator
// is permanent.
func explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var refused *pgconn.PgError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var certificate *tls.CertificateVerificationError
	var fix string
	switch {
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &certificate):
		fix = "correct the address, or name the certificate's authority with sslrootcert in the address"
	case !errors.As(err, &refused):
	case refused.Code == "28P01", refused.Code == "28000":
		fix = "correct the user, or its password in PGPASSWORD or PGPASSFILE; pg_hba.conf must allow the user and the host"
	case refused.Code == "3D000":
		fix = "correct the database of the address"
	case refused.Code == "42501":
		fix = "give the role the rights that 'lull bridge postgres setup' prints"
	}
	if fix == "" {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return backoff.Permanent(fmt.Errorf("%s: %w: %s", doing, err, fix))
}

// slotName is what PostgreSQL allows.
var slotName = regexp.MustCompile(`^[a-z0-9_]{1,63}$`)

// ValidSlot reports whether PostgreSQL allows a name for a slot.
func ValidSlot(name string) bool { return slotName.MatchString(name) }

// identifierInText returns a name for a list of identifiers in a text of SQL.
func identifierInText(name string) string {
	return strings.ReplaceAll(pgx.Identifier{name}.Sanitize(), "'", "''")
}

// slotFacts are what PostgreSQL says about the slot.
type slotFacts struct {
	confirmed, status string
	lag, kept         int64 // bytes of the log behind the newest: not confirmed, and kept for the slot
	safe              int64 // bytes that may still be written before the slot is lost, or -1 for no limit
}

// look reads the facts of the slot. If the slot can never deliver again, the error ends the bridge.
func (d *Database) look(ctx context.Context, conn *pgconn.PgConn) (f slotFacts, err error) {
	rows, err := query(ctx, conn, `
select coalesce(plugin, ''), coalesce(database, '') = current_database(), coalesce(wal_status, 'lost'),
  coalesce(confirmed_flush_lsn::text, ''),
  coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::int8,
  coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::int8, coalesce(safe_wal_size, -1)
from pg_replication_slots where slot_name = $1`, d.Slot)
	if err != nil {
		return f, explain("look at the slot", err)
	}
	const again = "drop it if it exists, create it with the SQL that 'lull bridge postgres setup' prints, " +
		"and copy the tables again with --copy and a new FILE: changes in between are only found by the copy, and " +
		"documents of rows that were deleted in between by lull index check"
	switch {
	case len(rows) == 0:
		return f, &bridge.Ended{Err: fmt.Errorf("PostgreSQL has no slot %s. If it is new, create it with the SQL that "+
			"'lull bridge postgres setup' prints. If it was dropped: %s", d.Slot, again)}
	case string(rows[0][0]) != "pgoutput" || string(rows[0][1]) != "t":
		return f, &bridge.Ended{Err: fmt.Errorf("slot %s is not a slot of this database with the plugin pgoutput: name "+
			"another one with --slot", d.Slot)}
	case string(rows[0][2]) == "lost":
		return f, &bridge.Ended{Err: fmt.Errorf("slot %s is lost: PostgreSQL has removed log that the bridge had not read, "+
			"as max_slot_wal_keep_size or idle_replication_slot_timeout says: %s", d.Slot, again)}
	}
	f = slotFacts{status: string(rows[0][2]), confirmed: string(rows[0][3])}
	for i, to := range []*int64{&f.lag, &f.kept, &f.safe} {
		if *to, err = strconv.ParseInt(string(rows[0][4+i]), 10, 64); err != nil {
			return f, fmt.Errorf("look at the slot: %w", err)
		}
	}
	return f, nil
}

// check says what an operator must fix in the database before rows can be sent.
func (d *Database) check(ctx context.Context, conn *pgconn.PgConn) error {
	rows, err := query(ctx, conn, `
select current_setting('server_version_num')::int / 10000, pg_is_in_recovery(), current_setting('wal_level'),
  exists (select from pg_publication where pubname = $1)`, d.Publication)
	if err != nil {
		return explain("look at the database", err)
	}
	r := rows[0]
	fix := ""
	switch major, err := strconv.Atoi(string(r[0])); {
	case err != nil || major < leastServer:
		fix = fmt.Sprintf("PostgreSQL %s is too old: use version %d or later", r[0], leastServer)
	case string(r[1]) == "t":
		fix = "this server is a standby: connect to the primary, because a standby cannot say at which position it reads a row"
	case string(r[2]) != "logical":
		fix = fmt.Sprintf("wal_level is %s: set it to logical, and restart PostgreSQL", r[2])
	case string(r[3]) != "t":
		fix = "there is no publication " + d.Publication + ": create it with the SQL that 'lull bridge postgres setup' prints"
	}
	if fix != "" {
		return backoff.Permanent(errors.New(fix))
	}
	return nil
}

// checkTables says which tables of the publication cannot be sent.
func (d *Database) checkTables(all []*table) error {
	known, first := map[string]bool{}, map[string]string{}
	for _, t := range all {
		known[t.name] = true
		if len(t.key) == 0 {
			return backoff.Permanent(fmt.Errorf("table %s has no primary key: add one, or take the table out of "+
				"publication %s", t.name, d.Publication))
		}
		if err := lull.Collection(t.collection).Validate(); err != nil {
			return backoff.Permanent(fmt.Errorf("table %s: %w: name another one with --collection %s=NAME", t.name, err,
				t.name))
		}
	}
	for _, t := range all {
		other := first[t.collection]
		if first[t.collection] = t.name; other != "" && (d.Collections[t.name] == "" || d.Collections[other] == "") {
			return backoff.Permanent(fmt.Errorf("tables %s and %s have the collection %s, where their keys may be equal: "+
				"name another one with --collection %[2]s=NAME", other, t.name, t.collection))
		}
	}
	for name := range d.Collections {
		if !known[name] {
			return backoff.Permanent(fmt.Errorf("--collection %s=%s: publication %s has no such table", name,
				d.Collections[name], d.Publication))
		}
	}
	return nil
}

// facts are the facts of a bridge, for its log and its health.
type facts[T any] struct{ v atomic.Pointer[T] }

func (f *facts[T]) set(v T) { f.v.Store(&v) }
func (f *facts[T]) get() T  { return *cmp.Or(f.v.Load(), new(T)) }

// HasPassword reports whether an address contains a password, or cannot be read.
func HasPassword(address string) bool {
	u, err := url.Parse(address)
	if err == nil && u.Host != "" {
		_, has := u.User.Password()
		return has || u.Query().Has("password")
	}
	return strings.Contains(strings.ToLower(address), "password")
}
