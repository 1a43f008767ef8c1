package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lullhq/lull/sink"
)

// Classes of outcomes that PostgreSQL has no code for.
const (
	classInterrupted     = "interrupted"      // the context ended, or the connection broke, before the answer
	classUnreachable     = "unreachable"      // no connection: nothing was sent
	classNotSent         = "not_sent"         // an earlier statement of the same write took all the time, or was refused whole
	classNoCredentials   = "no_credentials"   // no connection was tried for want of credentials
	classOtherCollection = "other_collection" // the table holds another collection
	classNotPostgres     = "no_connection"    // what is there does not speak to us as PostgreSQL, or not encrypted
	classNewer           = "newer_fence"
)

// scope is what an error says something about.
type scope byte

const (
	item   scope = iota // a document of the statement: the others may be written
	table               // the table, or the moment
	server              // every table
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

// reason is what an outcome says of an error: the condition, and the column where there is one.
// PostgreSQL's text quotes documents.
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
	return sink.Reason(class, e.ColumnName)
}

// missing reports that the table does not exist.
func missing(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "42P01"
}

// definite reports that the server refused a statement and lives on: nothing was applied.
func definite(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.SeverityUnlocalized == "ERROR"
}

// judge says what an error of a statement means for its documents.
func judge(err error) (sink.Outcome, scope) {
	var e *pgconn.PgError
	switch {
	case !errors.As(err, &e) && pgconn.SafeToRetry(err):
		return sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: classNotSent}, table
	case e == nil:
		return sink.Outcome{Kind: sink.Unknown, Reason: classInterrupted}, table
	case e.SeverityUnlocalized != "ERROR":
		// The session ended. It may have been the commit's last step that it did not tell of.
		return sink.Outcome{Kind: sink.Unknown, Reason: reason(e)}, table
	}
	o := sink.Outcome{Reason: reason(e)}
	switch class := e.Code[:min(2, len(e.Code))]; {
	case e.Code == "57014": // statement_timeout, or somebody canceled it
		o.Kind, o.Apart = sink.Throttled, true
		return o, table
	case e.Code == "55P03", class == "40":
		o.Kind, o.Apart = sink.Throttled, true
		return o, item
	case class == "53", class == "57", class == "58", class == "XX", class == "25":
		// Too little of something, a server that became a replica, or a fault of its own.
		o.Kind = sink.Throttled
		return o, server
	case e.Code == "23503", e.Code == "23505", class == "P0": // another document may have to come or go first
		o.Kind, o.Apart = sink.Refused, true
		return o, item
	case class == "22", class == "23", class == "54":
		o.Kind, o.Apart = sink.Rejected, true
		return o, item
	case class == "42", class == "3F", class == "0A":
		o.Kind, o.Apart = sink.Configuration, true
		return o, table
	case class == "28", class == "3D":
		o.Kind = sink.Configuration
		return o, server
	}
	o.Kind, o.Apart = sink.Refused, true
	return o, item
}

// notConnected judges why there is no connection: nothing was sent.
func notConnected(ctx context.Context, err error) sink.Outcome {
	var e *pgconn.PgError
	var login *loginError
	var network net.Error
	switch {
	case errors.Is(err, errBusy), ctx.Err() != nil && !errors.As(err, &e):
		return sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: classNotSent}
	case errors.As(err, &login):
		return sink.Outcome{Kind: sink.Configuration, Reason: classNoCredentials}
	case errors.As(err, &e):
		o := sink.Outcome{Kind: sink.Throttled, Reason: reason(e)}
		if class := e.Code[:min(2, len(e.Code))]; class != "53" && class != "57" && class != "58" && class != "XX" {
			o.Kind = sink.Configuration
		}
		return o
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return sink.Outcome{Kind: sink.Throttled, Reason: classUnreachable}
	}
	return sink.Outcome{Kind: sink.Configuration, Reason: classNotPostgres}
}
