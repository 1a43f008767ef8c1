package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Classes of outcomes that PostgreSQL has no code for.
const (
	classNotPostgres = "no_connection" // what is there does not speak to us as PostgreSQL, or not encrypted
	classNewer       = "newer_fence"
)

// conditions are PostgreSQL's own names of the codes that users of lull meet.
var conditions = map[string]string{
	"22000": "data_exception", "22001": "string_data_right_truncation", "22003": "numeric_value_out_of_range", "22007": "invalid_datetime_format",
	"22023": "invalid_parameter_value", "22P02": "invalid_text_representation", "22P05": "untranslatable_character",
	"23502": "not_null_violation", "23503": "foreign_key_violation", "23505": "unique_violation",
	"23514": "check_violation", "25006": "read_only_sql_transaction", "28000": "invalid_authorization_specification",
	"28P01": "invalid_password", "3D000": "invalid_catalog_name", "40001": "serialization_failure",
	"40P01": "deadlock_detected", "42501": "insufficient_privilege", "42703": "undefined_column",
	"42704": "undefined_object", "42P01": "undefined_table", "42P10": "invalid_column_reference",
	"53100": "disk_full", "53200": "out_of_memory", "53300": "too_many_connections", "54000": "program_limit_exceeded",
	"54001": "statement_too_complex", "55P03": "lock_not_available", "57014": "query_canceled",
	"57P01": "admin_shutdown", "57P03": "cannot_connect_now", "P0001": "raise_exception",
}

// reason is what an outcome says about an error: the condition, and the column if there is one. It
// omits PostgreSQL's text, which quotes documents.
func reason(e *pgconn.PgError) string {
	class, ok := conditions[e.Code]
	if !ok {
		class = "sqlstate " + strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
				return r
			}
			return -1
		}, e.Code)
	}
	switch of := ownColumn.FindStringSubmatch(e.Message); {
	case e.ColumnName != "":
		return sink.Named(class, "column", e.ColumnName)
	case e.ConstraintName != "":
		return sink.Named(class, "constraint", e.ConstraintName)
	case e.Code == "42703" && of != nil && slices.Contains(written, of[1]):
		return sink.Named(class, "column", of[1])
	}
	return class
}

// ownColumn finds the name of a column in a message about one that is missing. PostgreSQL gives it
// nowhere else. It counts only if lull's statements name that column: a trigger may put content
// there.
var ownColumn = regexp.MustCompile(`column (?:held\.|excluded\.)?"?([a-z_]+)"? `)

// written are the columns that lull's statements name.
var written = append([]string{columnSearch, columnEmbedding}, columns...)

// code is what PostgreSQL calls an error; empty for one that it did not tell.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// missing reports that the table does not exist.
func missing(err error) bool { return code(err) == "42P01" }

// unsent reports that nothing of a statement was sent. pgx also calls "conn closed" safe to retry,
// which it returns if the connection breaks before the answer. That error alone has no cause.
func unsent(err error) bool {
	var e interface {
		error
		SafeToRetry() bool
	}
	return errors.As(err, &e) && e.SafeToRetry() && errors.Unwrap(e) != nil
}

// judge says what an error of a statement means for its documents. ofOne says that it is about one
// of them: the others may be written.
func judge(err error) (o sink.Outcome, ofOne bool) {
	var e *pgconn.PgError
	switch {
	case !errors.As(err, &e) && unsent(err):
		return exchange.Late, false
	case e == nil:
		return sink.Outcome{Kind: sink.Unknown, Reason: exchange.ClassInterrupted}, false
	case e.SeverityUnlocalized != "ERROR":
		// The session ended, perhaps in the commit's last step, so the write may have been applied.
		return sink.Outcome{Kind: sink.Unknown, Reason: reason(e)}, false
	}
	m := meaningOf(e)
	return sink.Outcome{Kind: m.kind, Apart: m.about != server, Reason: reason(e)}, m.about == document
}

// scope is what an error is about.
type scope byte

const (
	document scope = iota // one of the statement: the others may be written
	table                 // the table, or the moment
	server                // every table
)

// meaning is the meaning of an error with the severity ERROR.
type meaning struct {
	kind  sink.OutcomeKind
	about scope
}

// meanings are the meanings of codes, and of classes of codes: their first two characters.
var meanings = map[string]meaning{
	"57014": {sink.Throttled, table}, // statement_timeout, or a user canceled the statement
	"55P03": {sink.Throttled, document},
	"40":    {sink.Throttled, document},
	// Too little of something, a server that became a replica, or a fault of the server.
	"53": {sink.Throttled, server},
	"57": {sink.Throttled, server},
	"58": {sink.Throttled, server},
	"XX": {sink.Throttled, server},
	"25": {sink.Throttled, server},
	// Another document may have to come or go first.
	"23503": {sink.Refused, document},
	"23505": {sink.Refused, document},
	"P0":    {sink.Refused, document},
	"22":    {sink.Rejected, document},
	"23":    {sink.Rejected, document},
	"54":    {sink.Rejected, document},
	"42":    {sink.Configuration, table},
	"3F":    {sink.Configuration, table},
	"0A":    {sink.Configuration, table},
	"28":    {sink.Configuration, server},
	"3D":    {sink.Configuration, server},
}

func meaningOf(e *pgconn.PgError) meaning {
	for _, code := range []string{e.Code, e.Code[:min(2, len(e.Code))]} {
		if m, listed := meanings[code]; listed {
			return m
		}
	}
	return meaning{sink.Refused, document}
}

// notConnected judges why there is no connection: nothing was sent.
func notConnected(ctx context.Context, err error) sink.Outcome {
	var e *pgconn.PgError
	var login *loginError
	var network net.Error
	switch {
	case errors.Is(err, errBusy), ctx.Err() != nil && !errors.As(err, &e):
		return exchange.Late
	case errors.As(err, &login):
		return sink.Outcome{Kind: sink.Configuration, Reason: exchange.ClassNoCredentials}
	case errors.As(err, &e):
		o := sink.Outcome{Kind: sink.Configuration, Reason: reason(e)}
		if meaningOf(e).kind == sink.Throttled {
			o.Kind = sink.Throttled
		}
		return o
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return sink.Outcome{Kind: sink.Throttled, Reason: exchange.ClassUnreachable}
	}
	return sink.Outcome{Kind: sink.Configuration, Reason: classNotPostgres}
}
