package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
)

// entry is one op as it stands in a statement.
type entry struct {
	op      int // its position
	table   string
	id      string
	mark    sink.Meta
	plain   []byte // nil for a delete
	present bool
}

// size is about what an entry adds to a statement.
func (e entry) size() int64 {
	return int64(len(e.plain) + len(e.id) + len(e.mark.Version) + len(e.mark.Key) + 60)
}

// Write sends the ops in as few statements as the bounds allow, one after another; see sink.Sink.
// After a refusal that is about the server as a whole the rest is not sent.
func (s *Sink) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	outcomes := make([]sink.Outcome, len(ops))
	entries := make([]entry, 0, len(ops))
	for i, op := range ops {
		outcomes[i] = sink.Outcome{Kind: sink.Throttled, Apart: true, Reason: classNotSent}
		if ctx.Err() != nil {
			continue
		}
		if e, refused := s.encode(i, op); refused != nil {
			outcomes[i] = *refused
		} else {
			entries = append(entries, e)
		}
	}
	// Writers that lock rows in one order never wait for each other in a circle.
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.id, b.id))
	})
	for len(entries) > 0 && ctx.Err() == nil {
		n := s.fit(entries)
		if stop := s.send(ctx, entries[:n], outcomes); stop != nil {
			all(entries[n:], outcomes, *stop) // they would have been told the same
			break
		}
		entries = entries[n:]
	}
	return outcomes
}

func (s *Sink) encode(i int, op sink.Op) (entry, *sink.Outcome) {
	table, ok := s.names.Index(op.Doc.Collection())
	if !ok {
		return entry{}, &sink.Outcome{Kind: sink.Rejected, Reason: classOtherCollection}
	}
	e := entry{op: i, table: table, id: escape(op.Doc.ID()), mark: op.Meta(), present: op.Present}
	if op.Kind == event.Put {
		plain, fault := sink.Plain(op.Document)
		if fault != nil {
			o := fault.Outcome()
			return entry{}, &o
		}
		e.plain = plain
	}
	return e, nil
}

// fit is how many of the entries, one at least, make a statement within the bounds: of one table.
func (s *Sink) fit(entries []entry) int {
	size := int64(0)
	for n, e := range entries {
		size += e.size()
		if n > 0 && (n >= s.BulkDocuments || size > s.BulkBytes || e.table != entries[0].table) {
			return n
		}
	}
	return len(entries)
}

func all(entries []entry, outcomes []sink.Outcome, o sink.Outcome) {
	for _, e := range entries {
		outcomes[e.op] = o
	}
}

// send writes entries of one table. stop is the outcome that forbids sending more.
func (s *Sink) send(ctx context.Context, entries []entry, outcomes []sink.Outcome) (stop *sink.Outcome) {
	conn, err := s.pool.get(ctx)
	if err != nil {
		o := notConnected(ctx, err)
		all(entries, outcomes, o)
		return &o
	}
	defer s.pool.put(conn)
	stop = s.halve(ctx, conn, entries, outcomes)
	deleted := func(e entry) bool { return e.plain == nil && outcomes[e.op].Kind == sink.Applied }
	if slices.ContainsFunc(entries, deleted) {
		s.forget(ctx, conn, entries)
	}
	return stop
}

// halve writes entries in one statement. Where that is refused for what is in it, it writes them in
// two, and so on until the document to blame is alone. What was refused has applied nothing.
func (s *Sink) halve(ctx context.Context, conn *pgconn.PgConn, entries []entry, outcomes []sink.Outcome) *sink.Outcome {
	if ctx.Err() != nil || conn.IsClosed() {
		return nil // they are as not sent
	}
	written, err := s.upsert(ctx, conn, entries)
	if missing(err) {
		entries, written, err = s.make(ctx, conn, entries, outcomes, err)
	}
	if err == nil {
		for _, e := range entries {
			outcomes[e.op] = sink.Outcome{Kind: sink.Applied}
			if !written[e.id] {
				outcomes[e.op] = sink.Outcome{Kind: sink.Newer, Reason: classNewer}
			}
		}
		return nil
	}
	o, scope := judge(err)
	if scope == item && len(entries) > 1 {
		half := len(entries) / 2
		if stop := s.halve(ctx, conn, entries[:half], outcomes); stop != nil {
			return stop
		}
		return s.halve(ctx, conn, entries[half:], outcomes)
	}
	all(entries, outcomes, o)
	if scope == server {
		// Who was connected to is not who takes writes: the next connection may find another.
		bye(conn)
		return &o
	}
	return nil
}

// make makes a table that is missing, and writes what may be the first of it. A delete of a
// document that should be there is not written: the table would be empty, and the delete called
// done.
func (s *Sink) make(ctx context.Context, conn *pgconn.PgConn, entries []entry, outcomes []sink.Outcome, absent error) (
	rest []entry, written map[string]bool, err error,
) {
	gone, _ := judge(absent)
	for _, e := range entries {
		if e.plain == nil && e.present {
			outcomes[e.op] = gone
		} else {
			rest = append(rest, e)
		}
	}
	if len(rest) == 0 {
		return nil, nil, nil
	}
	if err = s.create(ctx, conn, entries[0].table); err == nil {
		written, err = s.upsert(ctx, conn, rest)
	} else if definite(err) {
		err = absent // somebody must make the table, or let us
	}
	return rest, written, err
}

// upsert inserts or replaces the rows whose fence is not greater than the one that is written. It
// returns the ids of those that were. It gives the server a little less time than we wait.
func (s *Sink) upsert(ctx context.Context, conn *pgconn.PgConn, entries []entry) (map[string]bool, error) {
	columns := make([][]*string, 6)
	for _, e := range entries {
		document := (*string)(nil)
		if e.plain != nil {
			text := string(e.plain)
			document = &text
		}
		at := e.mark.Indexed.Format(time.RFC3339Nano)
		fence, version, key := strconv.FormatInt(int64(e.mark.Fence), 10), escape(e.mark.Version), escape(e.mark.Key)
		for i, text := range []*string{&e.id, &fence, &version, &key, &at, document} {
			columns[i] = append(columns[i], text)
		}
	}
	values, formats := make([][]byte, len(columns)), make([]int16, len(columns))
	for i, texts := range columns {
		values[i], formats[i] = textArray(texts), 1
	}
	var b pgconn.Batch
	b.ExecParams(limits, limitsOf(ctx), nil, nil, nil)
	b.ExecParams(`INSERT INTO `+s.table(entries[0].table)+` AS held (id, fence, version, order_key, indexed_at, document)
SELECT id, fence::bigint, version, order_key, indexed_at::timestamptz, document::json
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
  AS op (id, fence, version, order_key, indexed_at, document)
ON CONFLICT (id) DO UPDATE SET fence = excluded.fence, version = excluded.version, order_key = excluded.order_key,
  indexed_at = excluded.indexed_at, document = excluded.document
WHERE held.fence <= excluded.fence
RETURNING id`, values, nil, formats, nil)
	results, err := conn.ExecBatch(ctx, &b).ReadAll()
	if err != nil {
		return nil, err
	}
	written := make(map[string]bool, len(entries))
	for _, row := range results[len(results)-1].Rows {
		written[string(row[0])] = true
	}
	return written, nil
}

// limits bounds what follows in the same transaction. A proxy between us and the server may give
// each transaction another session, so nothing is set for longer.
const limits = `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true)`

// Bounds of a statement where the context has no end, and of waiting for somebody else's lock.
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

// forget removes deletes that were remembered for long enough, about twice as many as were written:
// so they never pile up. That it fails harms nobody.
func (s *Sink) forget(ctx context.Context, conn *pgconn.PgConn, entries []entry) {
	if ctx.Err() != nil || conn.IsClosed() {
		return
	}
	before := entries[0].mark.Indexed.Add(-s.RememberDeletes).Format(time.RFC3339Nano)
	table := s.table(entries[0].table)
	var b pgconn.Batch
	b.ExecParams(limits, limitsOf(ctx), nil, nil, nil)
	b.ExecParams(`DELETE FROM `+table+` WHERE id IN (SELECT id FROM `+table+`
WHERE document IS NULL AND indexed_at < $1::timestamptz LIMIT $2::int FOR UPDATE SKIP LOCKED)`,
		[][]byte{[]byte(before), fmt.Append(nil, 2*len(entries)+10)}, nil, nil, nil)
	_, _ = conn.ExecBatch(ctx, &b).ReadAll()
}

// textArray is an array of texts in PostgreSQL's binary format; nil is NULL.
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
