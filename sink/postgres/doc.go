// SPDX-License-Identifier: Apache-2.0

// Package postgres is the kind of sink for PostgreSQL 14 and later: full text search, and vectors
// with the extension pgvector.
//
// Each collection has a table. A row contains a document as it was written, digit for digit, and
// the fence of the write. One statement inserts or replaces several documents, and a condition of
// the statement compares fences. So this sink has versions: if the row has a greater fence, the
// write gets the outcome Newer. A delete leaves a row without a document, which keeps the fence for
// the time of rememberDeletes.
//
// The sink talks to the server through pgconn, the lowest layer of pgx, which has a third of the
// size of pgx. A statement is applied completely or not at all. An error of the severity ERROR
// means that nothing was applied. If the error is about the contents of a document, the sink halves
// the request until that document is alone. docs/sinks/postgres.md is the page for users of this
// sink.
package postgres
