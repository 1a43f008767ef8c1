// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Write sends the ops in as few statements as the bounds allow, one after another; see sink.Sink.
// If the server as a whole refuses, Write does not send the remaining ops.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	b := exchange.Batch{Same: true}
	entries := b.Prepare(ctx, ops, s.names, nil)
	// All writers lock rows in the same order, so they cannot cause a deadlock.
	// sort.Slice is in the program already, and slices.SortFunc of such large values adds 10 KB to it.
	sort.Slice(entries, func(i, j int) bool {
		a, b := entries[i], entries[j]
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Doc.ID(), b.Doc.ID())) < 0
	})
	most := exchange.NewBounds(s.BulkDocuments, s.BulkBytes)
	most.OneIndex = true // a statement is for one table
	b.Push(ctx, entries, most, func(part []exchange.Entry) (whole *sink.Outcome, ofOne bool) {
		return s.send(ctx, &b, part), false
	})
	return b.Outcomes
}

// send writes the entries of one table. If there is no connection, whole is the outcome of all
// entries.
func (s *Sink) send(ctx context.Context, b *exchange.Batch, entries []exchange.Entry) (whole *sink.Outcome) {
	conn, err := s.pool.get(ctx)
	if err != nil {
		o := notConnected(ctx, err)
		return &o
	}
	defer s.pool.put(conn)
	s.halve(ctx, conn, b, entries)
	deleted := func(e exchange.Entry) bool { return e.Plain == nil && b.Outcomes[e.Position].Kind == sink.Applied }
	if slices.ContainsFunc(entries, deleted) {
		s.forget(ctx, conn, entries)
	}
	return nil
}

// halve writes entries in one statement. If the server refuses the contents, halve writes each half
// in a separate statement, and so on until the document to blame is alone. A refused statement has
// applied nothing.
func (s *Sink) halve(ctx context.Context, conn *pgconn.PgConn, b *exchange.Batch, entries []exchange.Entry) {
	if ctx.Err() != nil || conn.IsClosed() {
		return // the entries keep the outcome that they were not sent
	}
	written, err := s.upsert(ctx, conn, entries)
	if isMissingTable(err) {
		entries, written, err = s.make(ctx, conn, b, entries, err)
	}
	if err == nil {
		for _, e := range entries {
			b.Outcomes[e.Position] = sink.Outcome{Kind: sink.Applied}
			if !written[e.Doc.ID()] {
				b.Outcomes[e.Position] = sink.Outcome{Kind: sink.Newer, Reason: classNewer}
			}
		}
		return
	}
	o, ofOne := judge(err)
	if ofOne && len(entries) > 1 {
		half := len(entries) / 2
		s.halve(ctx, conn, b, entries[:half])
		s.halve(ctx, conn, b, entries[half:])
		return
	}
	b.All(entries, inTable(o, entries[0].Index))
	if b.Saw(o) {
		// This server possibly does not accept writes. The next connection may reach another
		// server.
		bye(conn)
	}
}

// make creates a missing table and writes the entries. The method does not write a delete of a
// document that should exist. Otherwise such a delete would count as done, although the table is
// new and empty.
func (s *Sink) make(
	ctx context.Context, conn *pgconn.PgConn, b *exchange.Batch, entries []exchange.Entry, absent error,
) (rest []exchange.Entry, written map[string]bool, err error) {
	gone, _ := judge(absent)
	gone = inTable(gone, entries[0].Index)
	for _, e := range entries {
		if e.Plain == nil && e.Present {
			b.Outcomes[e.Position] = gone
		} else {
			rest = append(rest, e)
		}
	}
	if len(rest) == 0 {
		return nil, nil, nil
	}
	if err = s.create(ctx, conn, entries[0].Index); err == nil {
		written, err = s.upsert(ctx, conn, rest)
		return rest, written, err
	}
	switch o, ofOne := judge(err); {
	case code(err) == "42501":
		err = absent // a user must create the table, or grant lull the right to create tables
	case ofOne: // PostgreSQL blames a document, but creating a table involves no document
		if o.Kind != sink.Throttled {
			o.Kind = sink.Configuration
		}
		b.All(rest, inTable(o, entries[0].Index))
		return nil, nil, nil
	}
	return rest, written, err
}

// inTable adds the name of the table to an outcome, if a user must correct the table.
func inTable(o sink.Outcome, index string) sink.Outcome {
	if o.Kind == sink.Configuration && o.Apart {
		o.Reason = sink.Named(o.Reason, "table", index)
	}
	return o
}

// upsert inserts the rows of the entries. The method replaces an existing row unless the fence of
// that row is greater. The method returns the ids of the written rows. The statement's time-out is
// a little shorter than the deadline of ctx.
func (s *Sink) upsert(ctx context.Context, conn *pgconn.PgConn, entries []exchange.Entry) (map[string]bool, error) {
	columns := make([][]*string, 6)
	for _, e := range entries {
		document := (*string)(nil)
		if e.Plain != nil {
			text := string(e.Plain)
			document = &text
		}
		mark := e.Meta()
		id, at := escape(e.Doc.ID()), mark.Indexed.Format(time.RFC3339Nano)
		fence, version, key := strconv.FormatInt(int64(mark.Fence), 10), escape(mark.Version), escape(mark.Key)
		for i, text := range []*string{&id, &fence, &version, &key, &at, document} {
			columns[i] = append(columns[i], text)
		}
	}
	values, formats := make([][]byte, len(columns)), make([]int16, len(columns))
	for i, texts := range columns {
		values[i], formats[i] = textArray(texts), 1
	}
	rows, err := limited(ctx, conn, `INSERT INTO `+s.table(entries[0].Index)+` AS held (id, fence, version, order_key, indexed_at, document)
SELECT id, fence::bigint, version, order_key, indexed_at::timestamptz, document::json
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
  AS op (id, fence, version, order_key, indexed_at, document)
ON CONFLICT (id) DO UPDATE SET fence = excluded.fence, version = excluded.version, order_key = excluded.order_key,
  indexed_at = excluded.indexed_at, document = excluded.document
WHERE held.fence <= excluded.fence
RETURNING id`, values, formats)
	written := make(map[string]bool, len(rows))
	for _, row := range rows {
		written[unescape(string(row[0]))] = true
	}
	return written, err
}

// limited runs one statement in a transaction with a time-out, and returns its rows.
func limited(ctx context.Context, conn *pgconn.PgConn, statement string, values [][]byte, formats []int16) ([][][]byte,
	error,
) {
	var b pgconn.Batch
	b.ExecParams(setLimits, limitsOf(ctx), nil, nil, nil)
	b.ExecParams(statement, values, nil, formats, nil)
	results, err := conn.ExecBatch(ctx, &b).ReadAll()
	if err != nil {
		return nil, err
	}
	return results[len(results)-1].Rows, nil
}

// setLimits sets time-outs for the current transaction only. A proxy before the server may give
// each transaction another session, so a setting must not outlive the transaction.
const setLimits = `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true)`

// slowStatement is the time-out of a statement if the context has no deadline. longestLock is how
// long a statement waits for a lock of another session.
const (
	slowStatement = 30 * time.Second
	longestLock   = 500 * time.Millisecond
)

func limitsOf(ctx context.Context) [][]byte {
	left := slowStatement
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline) * 9 / 10
	}
	ms := func(d time.Duration) []byte { return fmt.Append(nil, max(1, d.Milliseconds())) }
	return [][]byte{ms(left), ms(min(left/4, longestLock))}
}

// forget removes rows of deleted documents that are older than RememberDeletes. The method removes
// up to about twice as many rows as entries were written, so such rows do not accumulate. A failure
// is harmless.
func (s *Sink) forget(ctx context.Context, conn *pgconn.PgConn, entries []exchange.Entry) {
	if ctx.Err() != nil || conn.IsClosed() {
		return
	}
	before := entries[0].Meta().Indexed.Add(-s.RememberDeletes).Format(time.RFC3339Nano)
	table := s.table(entries[0].Index)
	_, _ = limited(ctx, conn, `DELETE FROM `+table+` WHERE id IN (SELECT id FROM `+table+`
WHERE document IS NULL AND indexed_at < $1::timestamptz LIMIT $2::int FOR UPDATE SKIP LOCKED)`,
		[][]byte{[]byte(before), fmt.Append(nil, 2*len(entries)+10)}, nil)
}

// textArray encodes an array of texts in PostgreSQL's binary format. nil becomes NULL.
func textArray(texts []*string) []byte {
	const oidText = 25
	n := 20
	for _, t := range texts {
		if n += 4; t != nil {
			n += len(*t)
		}
	}
	b := make([]byte, 0, n)
	number := func(v uint32) { b = binary.BigEndian.AppendUint32(b, v) }
	number(1) // dimensions
	number(1) // there may be NULLs
	number(oidText)
	number(uint32(len(texts)))
	number(1) // the first index
	for _, t := range texts {
		if t == nil {
			number(^uint32(0))
			continue
		}
		number(uint32(len(*t)))
		b = append(b, *t...)
	}
	return b
}
