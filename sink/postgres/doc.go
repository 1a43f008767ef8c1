// Package postgres is the kind of sink for PostgreSQL 14 and later: full text search, and vectors
// with the extension pgvector.
//
// Each collection has a table. A row is a document as it was written, digit for digit, with its
// fence beside it. One statement inserts or replaces what one request holds, and its condition
// compares fences. So the sink has versions: whatever is older than what a row holds is refused as
// newer. A delete leaves a row without a document, which remembers its fence for rememberDeletes.
//
// It speaks the protocol through pgconn, the lowest layer of pgx: that weighs a third of pgx. A
// statement is all or nothing, and an error of the severity ERROR says that nothing was applied.
// Where the error is about what is in a document, the request is cut in halves until that document
// is alone. docs/sinks/postgres.md says what its users need to know.
package postgres
