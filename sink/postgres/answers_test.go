// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/postgres"
	"github.com/lullhq/lull/sink/sinktest"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/answers.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// row is one answer of PostgreSQL. A row says how a fake server gives the answer and, if possible,
// how a real server can be made to give it.
type row struct {
	sinktest.Answer
	fake   *fake
	change func(*postgres.Options)
	// real prepares a real server, which has no tables yet.
	real func(t *testing.T, s *postgres.Sink)
}

func both(o sink.Outcome) sinktest.Answer { return sinktest.Answer{Put: o, Delete: o} }

func putOnly(kind sink.OutcomeKind, reason string) sinktest.Answer {
	return sinktest.Answer{Put: apart(kind, reason).Put}
}

func of(kind sink.OutcomeKind, reason string) sinktest.Answer {
	return both(sink.Outcome{Kind: kind, Reason: reason})
}

func apart(kind sink.OutcomeKind, reason string) sinktest.Answer {
	return both(sink.Outcome{Kind: kind, Reason: reason, Apart: true})
}

func says(a sinktest.Answer, engine, what, why string) sinktest.Answer {
	a.Engine, a.Says, a.Why = engine, what, why
	return a
}

func with(document string, a sinktest.Answer) sinktest.Answer {
	a.Document = document
	return a
}

// always returns a fake that answers each write with an error code.
func always(code string) *fake { return &fake{answer: func(statement) string { return code }} }

// once returns a fake that answers the first write with an error code.
func once(code string) *fake {
	var asked atomic.Bool
	return &fake{answer: func(statement) string {
		if asked.Swap(true) {
			return ""
		}
		return code
	}}
}

// puts returns a fake that answers each write with at least one put with an error code.
func puts(code string) *fake {
	return &fake{answer: func(s statement) string {
		if s.puts > 0 {
			return code
		}
		return ""
	}}
}

// refuses returns a fake that answers each connection with an error.
func refuses(code string) *fake {
	return &fake{login: func(b *pgproto3.Backend) { b.Send(failure("FATAL", code)) }}
}

// breaks returns a fake that gives the answer to a write, and hangs up.
func breaks(answer func(*pgproto3.Backend)) *fake {
	return &fake{instead: func(b *pgproto3.Backend, _ net.Conn) {
		answer(b)
		_ = b.Flush()
	}}
}

// run creates the table for the documents of the rows, and then runs statements. % is replaced by
// the name of the table.
func run(statements ...string) func(*testing.T, *postgres.Sink) {
	return func(t *testing.T, s *postgres.Sink) {
		t.Helper()
		table := s.Schema + `."lull-content"`
		for _, statement := range append(s.Table("lull-content"), statements...) {
			s.Run(t, strings.NewReplacer("%no", s.Schema+".no", "%", table).Replace(statement))
		}
	}
}

const (
	usual  = "" // the outcome itself says why: docs/sinks/opensearch.md lists the outcomes
	checks = "ALTER TABLE % ADD CONSTRAINT mine CHECK (length(document ->> 'title') < 3)"
)

func rows() []row {
	return []row{
		{
			Answer: says(sinktest.Answer{}, "works", "the ids of the rows that it wrote", "the transaction is committed"),
			fake:   &fake{}, real: run(),
		},
		{
			Answer: says(of(sink.Newer, "newer_fence"), "holds a greater fence", "no row of that id", "another program writes to the table: alarm"),
			fake:   &fake{keeps: true},
			real:   run(`INSERT INTO % (id, fence, version, order_key, indexed_at) VALUES ('a', 9, '', '', now()), ('b', 9, '', '', now())`),
		},
		{
			Answer: says(sinktest.Answer{Delete: apart(sink.Configuration, "undefined_table: table lull-content").Delete}, "has no table, and lets lull make it", "42P01", "a put makes the table; a delete must not make an empty one"),
			fake:   once("42P01"), real: func(*testing.T, *postgres.Sink) {},
		},
		{
			Answer: says(apart(sink.Configuration, "undefined_table: table lull-content"), "has no table, and does not let lull make it", "42P01, then 42501", "run `lull index install-template` as a user who may"),
			fake:   &fake{answer: always("42P01").answer, creates: "42501"}, real: onlyUse,
		},
		{
			Answer: says(sinktest.Answer{
				Put:    apart(sink.Configuration, "undefined_object: table lull-content").Put,
				Delete: apart(sink.Configuration, "undefined_table: table lull-content").Delete,
			}, "has no table, and not the option language", "42P01, then 42704", "correct the option"),
			fake: &fake{answer: always("42P01").answer, creates: "42704"}, real: func(*testing.T, *postgres.Sink) {},
			change: func(o *postgres.Options) { o.Language = "klingon" },
		},
		{
			Answer: says(sinktest.Answer{
				Put:    apart(sink.Configuration, "raise_exception: table lull-content").Put,
				Delete: apart(sink.Configuration, "undefined_table: table lull-content").Delete,
			}, "has no table, and an event trigger that forbids to make one", "42P01, then P0001", "make the table"),
			fake: &fake{answer: always("42P01").answer, creates: "P0001"},
		},
		{
			Answer: says(apart(sink.Configuration, "undefined_column: column fence: table lull-content"), "has a table of another program", "42703", usual),
			fake:   always("42703"), real: func(t *testing.T, s *postgres.Sink) {
				s.Run(t, `CREATE TABLE `+s.Schema+`."lull-content" (id text PRIMARY KEY, name text)`)
			},
		},
		{
			Answer: says(apart(sink.Configuration, "insufficient_privilege: table lull-content"), "does not let the user write", "42501", usual),
			fake:   always("42501"), real: func(t *testing.T, s *postgres.Sink) { run()(t, s); onlyUse(t, s) },
		},
		{
			Answer: says(with(`{"title":"secret\u0000"}`, putOnly(sink.Rejected, "untranslatable_character")), "finds U+0000 in a text", "22P05", "PostgreSQL's texts do not have that character"),
			fake:   puts("22P05"), real: run(),
		},
		{
			Answer: says(with(`{"title":"secret\ud800"}`, putOnly(sink.Rejected, "invalid_text_representation")), "finds half of a surrogate pair", "22P02", usual),
			fake:   puts("22P02"), real: run(),
		},
		{
			Answer: says(with(`{"title":"`+strings.Join(many(120_000), " ")+`"}`, putOnly(sink.Rejected, "program_limit_exceeded")), "finds too many different words", "54000: more than 1 MB of words", usual),
			fake:   puts("54000"), real: run(),
		},
		{
			Answer: says(with(`{"title":`+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)+`}`, putOnly(sink.Rejected, "statement_too_complex")), "finds a document nested too deep", "54001", usual),
			fake:   puts("54001"), real: run("SELECT set_config('max_stack_depth', '100', false)"),
		},
		{
			Answer: says(with(`{"title":"secret","vector":[1,2,3]}`, putOnly(sink.Rejected, "data_exception")), "gets a vector of other dimensions", "22000", usual),
			fake:   puts("22000"), real: run(), change: func(o *postgres.Options) {
				o.Vector = postgres.Vector{Field: "/vector", Dimensions: 2}
			},
		},
		{
			Answer: says(with(`{"vector":"secret"}`, putOnly(sink.Rejected, "invalid_text_representation")), "gets something that is not a vector", "22P02", usual),
			fake:   puts("22P02"), real: run(), change: func(o *postgres.Options) {
				o.Vector = postgres.Vector{Field: "/vector", Dimensions: 2}
			},
		},
		{
			Answer: says(putOnly(sink.Rejected, "check_violation: constraint mine"), "has a check of yours that fails", "23514", usual),
			fake:   puts("23514"), real: run(checks),
		},
		{
			Answer: says(putOnly(sink.Rejected, "invalid_text_representation"), "has a generated column of yours that fails", "22P02", usual),
			fake:   puts("22P02"), real: run("ALTER TABLE % ADD COLUMN n int GENERATED ALWAYS AS ((document ->> 'title')::int) STORED"),
		},
		{
			Answer: says(putOnly(sink.Refused, "unique_violation: constraint mine"), "has a unique index of yours that another document is in", "23505", "the other may change first: it is tried again, maxRefusals times"),
			fake:   puts("23505"), real: run("CREATE UNIQUE INDEX mine ON % ((document ->> 'title'))",
				`INSERT INTO % (id, fence, version, order_key, indexed_at, document) VALUES ('x', 1, '', '', now(), '{"title":"secret"}')`),
		},
		{
			Answer: says(putOnly(sink.Refused, "raise_exception"), "has a trigger of yours that raises an exception", "P0001", "unclear: it is tried again, maxRefusals times"),
			fake:   puts("P0001"), real: run(`CREATE FUNCTION %no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'secret'; END $$`,
				"CREATE TRIGGER no BEFORE INSERT ON % FOR EACH ROW WHEN (NEW.document IS NOT NULL) EXECUTE FUNCTION %no()"),
		},
		{
			Answer: says(putOnly(sink.Refused, "unique_violation: constraint mine"), "refuses the commit", "23505 after the rows", "a constraint that is deferred is checked at the end; nothing was applied"),
			fake:   &fake{commits: "23505"},
			real: run("ALTER TABLE % ADD COLUMN title text GENERATED ALWAYS AS (document ->> 'title') STORED",
				"ALTER TABLE % ADD CONSTRAINT mine UNIQUE (title) DEFERRABLE INITIALLY DEFERRED",
				`INSERT INTO % (id, fence, version, order_key, indexed_at, document) VALUES ('x', 1, '', '', now(), '{"title":"secret"}')`),
		},
		{
			Answer: says(apart(sink.Throttled, "lock_not_available"), "has the row locked", "55P03, after half a second at most", "the others are written"),
			fake:   always("55P03"), real: func(t *testing.T, s *postgres.Sink) {
				run()(t, s)
				s.Write(t.Context(), []sink.Op{put("content#a", 1, `{}`), put("content#b", 1, `{}`)})
				other := real(t, nil)
				other.Run(t, "BEGIN", "SELECT id FROM "+s.Schema+`."lull-content" FOR UPDATE`)
				t.Cleanup(func() { other.Run(t, "ROLLBACK") })
			},
		},
		{
			Answer: says(apart(sink.Throttled, "serialization_failure"), "finds writers in each other's way", "40001, 40P01", usual),
			fake:   always("40001"),
		},
		{
			Answer: says(apart(sink.Throttled, "query_canceled"), "takes too long, or somebody cancels it", "57014, a little before our time is over", usual),
			fake:   always("57014"),
		},
		{
			Answer: says(of(sink.Throttled, "disk_full"), "has a full disk, or too little memory", "53100, 53200", usual),
			fake:   always("53100"),
		},
		{
			Answer: says(of(sink.Throttled, "read_only_sql_transaction"), "has become a replica", "25006", "the next connection may find the new primary"),
			fake:   always("25006"), real: run(`SELECT set_config('transaction_read_only', 'on', false), set_config('default_transaction_read_only', 'on', false)`),
		},
		{
			Answer: says(of(sink.Throttled, "sqlstate XX000"), "has a fault of its own", "XX000, 58030", usual),
			fake:   always("XX000"),
		},
		{
			Answer: says(apart(sink.Refused, "sqlstate 99999"), "refuses it in a way of its own", "a code that is not listed", "unclear: it is tried again, maxRefusals times"),
			fake:   always("99999"),
		},
		{
			Answer: says(of(sink.Unknown, "admin_shutdown"), "is shut down during the write", "57P01, and hangs up", usual),
			fake:   breaks(func(b *pgproto3.Backend) { b.Send(failure("FATAL", "57P01")) }),
		},
		{
			Answer: says(of(sink.Unknown, "interrupted"), "closes the connection before it answers", "the end of the stream", usual),
			fake:   breaks(func(*pgproto3.Backend) {}),
		},
		{
			Answer: says(of(sink.Unknown, "interrupted"), "closes the connection before it has committed", "the rows, and the end of the stream", usual),
			fake: breaks(func(b *pgproto3.Backend) {
				b.Send(&pgproto3.ParseComplete{})
				b.Send(&pgproto3.CommandComplete{CommandTag: []byte("INSERT 0 2")})
			}),
		},
		{
			Answer: says(of(sink.Unknown, "interrupted"), "answers what is not the protocol", "noise", usual),
			fake: &fake{instead: func(_ *pgproto3.Backend, conn net.Conn) {
				_, _ = conn.Write([]byte("secret noise, and much of it"))
			}},
		},
		{
			Answer: says(of(sink.Throttled, "too_many_connections"), "has no connection left", "53300 to the connection", usual),
			fake:   refuses("53300"),
		},
		{
			Answer: says(of(sink.Throttled, "cannot_connect_now"), "is starting", "57P03 to the connection", usual),
			fake:   refuses("57P03"),
		},
		{
			Answer: says(of(sink.Configuration, "invalid_password"), "does not know lull", "28P01 to the connection", usual),
			fake:   refuses("28P01"),
		},
		{
			Answer: says(of(sink.Configuration, "invalid_catalog_name"), "has no such database", "3D000 to the connection", usual),
			fake:   refuses("3D000"),
		},
		{
			Answer: says(of(sink.Configuration, "no_connection"), "does not encrypt", "N to the request for TLS", "nothing is sent in the clear: see the option tls"),
			fake:   &fake{}, change: func(o *postgres.Options) { o.TLS = "verify-full" },
		},
		{
			Answer: says(of(sink.Throttled, "unreachable"), "is away", "no connection", "not a byte was sent"),
			fake:   &fake{}, change: func(o *postgres.Options) { o.URL = "postgres://127.0.0.1:1/search" },
		},
		{
			Answer: says(of(sink.Configuration, "no_credentials"), "cannot be asked without credentials", "nothing: no connection was tried", usual),
			fake:   &fake{}, change: func(o *postgres.Options) {
				o.Login = func(context.Context, string, string) (string, string, error) {
					return "", "", errors.New("no secret")
				}
			},
		},
	}
}

func many(n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("secret%08x", i*2654435761)
	}
	return words
}

// onlyUse makes the sink connect as a user who may use the schema but may not create tables.
func onlyUse(t *testing.T, s *postgres.Sink) {
	t.Helper()
	user := s.Schema + "_user"
	s.Run(t, "CREATE ROLE "+user, "GRANT USAGE ON SCHEMA "+s.Schema+" TO "+user, "SET ROLE "+user)
	t.Cleanup(func() { s.Run(t, "RESET ROLE", "DROP OWNED BY "+user, "DROP ROLE "+user) })
}

func table() []sinktest.Answer {
	all := make([]sinktest.Answer, 0, len(rows()))
	for _, r := range rows() {
		all = append(all, r.Answer)
	}
	return all
}

// on starts a fake server and returns a sink that writes to it.
func on(t *testing.T, f *fake, change func(*postgres.Options)) *postgres.Sink {
	t.Helper()
	o := postgres.Options{URL: f.start(t), Index: "lull-{collection}"}
	o.TLS, o.User = "off", "me"
	if change != nil {
		change(&o)
	}
	s, err := postgres.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	all := table()
	for i, r := range rows() {
		all[i].Open = func(t *testing.T) sink.Sink { return on(t, r.fake, r.change) }
	}
	sinktest.Answers(t, all)
}

func TestRealServerGivesTheAnswers(t *testing.T) {
	t.Parallel()
	for _, r := range rows() {
		if r.real == nil {
			continue
		}
		t.Run(r.Name(), func(t *testing.T) {
			t.Parallel()
			s := real(t, r.change)
			r.real(t, s)
			r.Check(t, s)
		})
	}
}

// The documentation page of the kind contains the table that the tests check.
func TestTheAnswersPageIsUpToDate(t *testing.T) {
	t.Parallel()
	sinktest.Page(t, "testdata/answers.md", "go test ./sink/postgres -run TestTheAnswersPage -rewrite", table(), *rewrite)
}

func put(doc string, fence int64, document string) sink.Op {
	op := del(doc, fence)
	op.Kind, op.Document = event.Put, []byte(document)
	return op
}

func del(doc string, fence int64) sink.Op {
	at := time.Unix(1_760_000_000, 0)
	return sink.Op{Doc: event.DocID(doc), Kind: event.Delete, Fence: event.Fence(fence), At: at}
}
