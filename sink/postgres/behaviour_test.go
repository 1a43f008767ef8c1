// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/postgres"
)

// A table remembers a delete for the time of rememberDeletes. A later delete removes the old row.
func TestDeletesAreForgottenAfterTheirTime(t *testing.T) {
	t.Parallel()
	s := real(t, func(o *postgres.Options) { o.RememberDeletes = time.Hour })
	at := time.Now()
	gone := func(id string, fence int64, at time.Time) sink.Op {
		op := del("content#"+id, fence)
		op.At = at
		return op
	}
	applied(t, s, put("content#stays", 1, `{}`), gone("old", 5, at.Add(-2*time.Hour)), gone("young", 5, at.Add(-time.Minute)))
	applied(t, s, gone("new", 6, at))
	rows := s.Run(t, `SELECT id FROM `+s.Schema+`."lull-content" ORDER BY id`)
	if got := fmt.Sprint(rows); got != "[[new] [stays] [young]]" {
		t.Errorf("rows %s, want the new, the young and the one that is not deleted", got)
	}
	if o := s.Write(t.Context(), []sink.Op{put("content#young", 4, `{}`)})[0]; o.Kind != sink.Newer {
		t.Errorf("older than a delete that is remembered: %+v", o)
	}
}

func applied(t *testing.T, s *postgres.Sink, ops ...sink.Op) {
	t.Helper()
	for i, o := range s.Write(t.Context(), ops) {
		if o.Kind != sink.Applied {
			t.Fatalf("op %d: %+v", i, o)
		}
	}
}

// If one document among many is refused, the others are still written.
func TestTheOthersOfARefusedRequestAreWritten(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	for _, bad := range [][]int{{0}, {499}, {17, 18, 300}} {
		var ops []sink.Op
		for i := range 500 {
			document := fmt.Sprintf(`{"n":%d}`, i)
			for _, b := range bad {
				if b == i {
					document = `{"title":"\u0000"}`
				}
			}
			ops = append(ops, put(fmt.Sprintf("content#%03d", i), 1, document))
		}
		for i, o := range s.Write(t.Context(), ops) {
			want := sink.Applied
			for _, b := range bad {
				if b == i {
					want = sink.Rejected
				}
			}
			if o.Kind != want {
				t.Errorf("with %v refused, %d is %+v", bad, i, o)
			}
		}
	}
}

// The vector of a document is in a column, and SQL finds the documents with similar vectors.
func TestVectorsAreSearchedBySQL(t *testing.T) {
	t.Parallel()
	for _, distance := range []string{"cosine", "l2", "inner"} {
		s := real(t, func(o *postgres.Options) {
			o.Vector = postgres.Vector{Field: "/deep/vector~1er", Dimensions: 2, Distance: distance}
			o.Collections = []event.Collection{"content"}
		})
		applied(t, s, put("content#a", 1, `{"deep":{"vector/er":[1,0]}}`), put("content#b", 1, `{"deep":{"vector/er":[0,1.5]}}`),
			put("content#none", 1, `{"deep":{"vector/er":null}}`))
		operator := map[string]string{"cosine": "<=>", "l2": "<->", "inner": "<#>"}[distance]
		rows := s.Run(t, `SELECT id FROM `+s.Schema+`."lull-content" ORDER BY embedding `+operator+` '[0.1,0.9]' LIMIT 1`)
		if got := fmt.Sprint(rows); got != "[[b]]" {
			t.Errorf("%s: got %s", distance, got)
		}
	}
}

// Prepare creates missing tables, and its error says how to change a table that does not fit.
// Prepare never changes a table.
func TestPrepareChangesNoTable(t *testing.T) {
	t.Parallel()
	news := []event.Collection{"news"}
	s := real(t, func(o *postgres.Options) { o.Collections = news })
	prepared := func(change func(*postgres.Options)) error {
		o := s.Options
		change(&o)
		other, err := postgres.New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		return other.Prepare(t.Context())
	}
	for range 2 {
		if err := prepared(func(*postgres.Options) {}); err != nil {
			t.Fatal(err)
		}
	}
	applied(t, s, put("news#a", 1, `{"title":"walks","vector":[1,2]}`))
	english := func(o *postgres.Options) { o.Language = "english" }
	vectors := func(o *postgres.Options) {
		english(o)
		o.Vector = postgres.Vector{Field: "/vector", Dimensions: 2}
	}
	for _, tt := range []struct {
		change func(*postgres.Options)
		column string
	}{
		{english, "search"},
		{vectors, "embedding"},
	} {
		err := prepared(tt.change)
		if err == nil || !strings.Contains(err.Error(), "column "+tt.column) {
			t.Fatalf("%s: got %v", tt.column, err)
		}
		_, statements, _ := strings.Cut(err.Error(), ": run ")
		for _, statement := range strings.Split(statements, "; ") {
			s.Run(t, statement)
		}
		if err := prepared(tt.change); err != nil {
			t.Errorf("%s: after the statements that it told: %v", tt.column, err)
		}
	}
	s.Run(t, `CREATE TABLE `+s.Schema+`."lull-others" (id text, name text)`)
	if err := prepared(func(o *postgres.Options) { o.Collections = []event.Collection{"others"} }); err == nil ||
		!strings.Contains(err.Error(), "lull did not create it") {
		t.Errorf("another program's table: got %v", err)
	}
}

// If the server does not answer before the context ends, the sent documents are Unknown. Documents
// that were not sent are Throttled.
func TestASilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	got := make(chan struct{})
	f := &fake{instead: func(b *pgproto3.Backend, _ net.Conn) {
		close(got)
		_, _ = b.Receive() // until the client hangs up
	}}
	s := on(t, f, func(o *postgres.Options) { o.BulkDocuments = 2 })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-got; cancel() }()
	var ops []sink.Op
	for i := range 5 {
		ops = append(ops, put(fmt.Sprintf("content#%d", i), 1, `{}`))
	}
	counts := map[sink.Outcome]int{}
	for _, o := range s.Write(ctx, ops) {
		counts[o]++
	}
	sent := sink.Outcome{Kind: sink.Unknown, Reason: "interrupted"}
	not := sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: "not_sent"}
	if counts[sent] != 2 || counts[not] != 3 {
		t.Errorf("outcomes %v, want 2 unknown and 3 not sent", counts)
	}
}

// Each connection logs in again, so that a rotated password is used.
func TestALoginIsForOneConnection(t *testing.T) {
	t.Parallel()
	var asked []string
	f := &fake{answer: func(statement) string { return "25006" }} // closes the connection
	s := on(t, f, func(o *postgres.Options) {
		o.User = "reader"
		o.Login = func(_ context.Context, address, user string) (string, string, error) {
			asked = append(asked, address+" "+user)
			return "me", "secret", nil
		}
	})
	for range 2 {
		s.Write(t.Context(), []sink.Op{put("content#a", 1, `{}`)})
	}
	if len(asked) != 2 || !strings.HasPrefix(asked[0], "127.0.0.1:") || !strings.HasSuffix(asked[0], " reader") {
		t.Errorf("asked %q", asked)
	}
}

func TestOptionsThatAreNotADatabase(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"", "host:5432", "http://host/db", "postgres://", "postgres://me:secret@host/db", "postgres://host/db?sslmode=disable", "postgres://%zz",
	} {
		if _, err := postgres.New(postgres.Options{URL: url}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v", url, err)
		}
	}
	o := postgres.Options{URL: "postgres://host/db"}
	o.CAFile = "/nonexistent"
	if _, err := postgres.New(o); err == nil || !strings.Contains(err.Error(), "caFile") {
		t.Errorf("got %v", err)
	}
}

// Ping says what to correct.
func TestPing(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"28P01": "password is wrong", "3D000": "check the url", "53300": "no free connection", "28000": "pg_hba.conf",
	} {
		if err := on(t, refuses(code), nil).Ping(t.Context()); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q", code, err, want)
		}
	}
	encrypted := on(t, &fake{}, func(o *postgres.Options) { o.TLS = "verify-full" })
	if err := encrypted.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "tls") {
		t.Errorf("a server without TLS: got %v", err)
	}
}

// The sink sends documents only to a server with a trusted certificate that is for the server's
// name.
func TestTheServersCertificateIsChecked(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil) // has a self-signed certificate for 127.0.0.1
	defer web.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		file, host string
		want       sink.Outcome
	}{
		"trusted":      {file, "127.0.0.1", sink.Outcome{}},
		"unknown":      {"", "127.0.0.1", sink.Outcome{Kind: sink.Configuration, Reason: "no_connection"}},
		"another name": {file, "localhost", sink.Outcome{Kind: sink.Configuration, Reason: "no_connection"}},
	} {
		s := on(t, &fake{certificate: &web.TLS.Certificates[0]}, func(o *postgres.Options) {
			o.TLS, o.CAFile, o.URL = "verify-full", tt.file, strings.Replace(o.URL, "127.0.0.1", tt.host, 1)
		})
		if got := s.Write(t.Context(), []sink.Op{put("content#a", 1, `{}`)})[0]; got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}

// If a statement is not sent because the context has ended, the outcome says nothing about the
// server.
func TestOurTimeEndsBeforeAStatementIsSent(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"while it connects": nil, "while the login is read": errors.New("late")} {
		ctx, cancel := context.WithCancel(t.Context())
		s := on(t, &fake{}, func(o *postgres.Options) {
			o.BulkDocuments = 1
			o.Login = func(context.Context, string, string) (string, string, error) {
				cancel()
				return "me", "secret", err
			}
		})
		for i, o := range s.Write(ctx, []sink.Op{put("content#a", 1, `{}`), put("content#b", 1, `{}`)}) {
			if want := (sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: "not_sent"}); o != want {
				t.Errorf("%s: op %d: %+v, want %+v", name, i, o, want)
			}
		}
	}
}

// For a read-only server, the error must say that it is read-only, and not that it cannot be
// reached.
func TestRealServerThatIsReadOnly(t *testing.T) {
	t.Parallel()
	s := real(t, nil)
	s.Run(t, "SET default_transaction_read_only = on")
	err := s.Ping(t.Context())
	if err == nil || !strings.Contains(err.Error(), "read-only") || strings.Contains(err.Error(), "tls") {
		t.Errorf("got %v", err)
	}
	s.Run(t, "SET default_transaction_read_only = off")
}
