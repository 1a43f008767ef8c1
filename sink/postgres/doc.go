// Package postgres is the kind of sink for PostgreSQL 14 and later: full text search, and vectors
// with the extension pgvector.
//
// Each collection has a table. A row is a document as it was written, digit for digit, with its
// fence. One statement inserts or replaces the documents of one request, and its condition compares
// fences. So the sink has versions: a write that is older than the row is refused as newer. A
// delete leaves a row without a document, which remembers its fence for rememberDeletes.
//
// It speaks the protocol through pgconn, the lowest layer of pgx, which is a third of pgx in size.
// A statement is all or nothing, and an error of the severity ERROR says that nothing was applied.
// If the error is about the contents of a document, the request is halved until that document is
// alone. docs/sinks/postgres.md says what its users need to know.
package postgres
