// SPDX-License-Identifier: Apache-2.0

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

// Classes of outcomes for which PostgreSQL has no error code.
const (
	classNotPostgres = "no_connection" // the server does not answer like PostgreSQL, or does not offer encryption
	classNewer       = "newer_fence"
)

// conditionNames maps error codes that users of lull can meet to the names that PostgreSQL gives
// them.
var conditionNames = map[string]string{
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

// reason returns the text of an outcome about an error: the name of the error code, and the column
// if there is one. The function omits PostgreSQL's text, which quotes documents.
func reason(e *pgconn.PgError) string {
	class, ok := conditionNames[e.Code]
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
	case e.Code == "42703" && of != nil && slices.Contains(ownColumns, of[1]):
		return sink.Named(class, "column", of[1])
	}
	return class
}

// ownColumn finds the name of a column in a message about a missing column. PostgreSQL writes that
// name nowhere else. lull uses the name only if its own statements contain the column, because the
// text of a trigger may quote content.
var ownColumn = regexp.MustCompile(`column (?:held\.|excluded\.)?"?([a-z_]+)"? `)

// ownColumns lists the columns that lull's statements name.
var ownColumns = append([]string{columnSearch, columnEmbedding}, columns...)

// code returns PostgreSQL's code of an error, or "" if the error does not come from PostgreSQL.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// isMissingTable reports whether an error says that a table does not exist.
func isMissingTable(err error) bool { return code(err) == "42P01" }

// isUnsent reports whether an error says that no byte of a statement was sent. pgx also says "safe
// to retry" for its error "conn closed", which it returns if the connection breaks before the
// answer. isUnsent excludes that error: it is the only one that wraps no cause.
func isUnsent(err error) bool {
	var e interface {
		error
		SafeToRetry() bool
	}
	return errors.As(err, &e) && e.SafeToRetry() && errors.Unwrap(e) != nil
}

// judge returns the outcome for the documents of a statement that failed. ofOne says that the error
// is about one document, so that the other documents may be written.
func judge(err error) (o sink.Outcome, ofOne bool) {
	var e *pgconn.PgError
	switch {
	case !errors.As(err, &e) && isUnsent(err):
		return exchange.Late, false
	case e == nil:
		return sink.Outcome{Kind: sink.Unknown, Reason: exchange.ClassInterrupted}, false
	case e.SeverityUnlocalized != "ERROR":
		// The session ended, perhaps during the commit, so the write may have been applied.
		return sink.Outcome{Kind: sink.Unknown, Reason: reason(e)}, false
	}
	m := meaningOf(e)
	return sink.Outcome{Kind: m.kind, Apart: m.about != server, Reason: reason(e)}, m.about == document
}

// scope says what an error is about.
type scope byte

const (
	document scope = iota // one document of the statement: the other documents may be written
	table                 // the table, or only the current moment
	server                // the server, and so every table
)

// meaning says what an error with the severity ERROR means for lull.
type meaning struct {
	kind  sink.OutcomeKind
	about scope
}

// meanings maps an error code, or the first two characters of a code, to its meaning.
var meanings = map[string]meaning{
	"57014": {sink.Throttled, table}, // statement_timeout, or a user canceled the statement
	"55P03": {sink.Throttled, document},
	"40":    {sink.Throttled, document},
	// The server lacks a resource, became a replica, or failed.
	"53": {sink.Throttled, server},
	"57": {sink.Throttled, server},
	"58": {sink.Throttled, server},
	"XX": {sink.Throttled, server},
	"25": {sink.Throttled, server},
	// The document may be accepted later, after another document was written or deleted.
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

// notConnected returns the outcome if there is no connection, so that nothing was sent.
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
