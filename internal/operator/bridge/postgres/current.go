// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// side is a connection for queries beside the stream.
type side struct {
	*catalog
	now map[uint32]*table // the columns of today, by OID
	// alive waits, and keeps the stream alive.
	alive func(ctx context.Context, d time.Duration) error
}

// busyPatience is how long a row that a transaction keeps busy is read again.
const busyPatience = 10 * time.Second

// reading is a row as a query saw it.
type reading struct {
	table            *table
	row              row // nil if there is no row
	snapshot         snapshot
	ctid, xmin, xmax string
}

// same reports whether both queries saw the same tuple, in the same state.
func (a *reading) same(b *reading) bool {
	return a.row != nil && b.row != nil && a.ctid == b.ctid && a.xmin == b.xmin && a.xmax == b.xmax
}

// lookup is what the function current needs to find the newest state of a row.
type lookup interface {
	// read returns the row with the key of r, or nil if the table was dropped. The error is
	// errLocked if the table is locked.
	read(ctx context.Context, t *table, r row) (*reading, error)
	// position returns the position of the log.
	position(ctx context.Context) (pglogrepl.LSN, error)
	// runs reports whether a transaction of the row's xmax may still run.
	runs(ctx context.Context, a *reading) (bool, error)
	// wait waits between two tries, and keeps the stream alive.
	wait(ctx context.Context, d time.Duration) error
}

var errLocked = errors.New("the table is locked")

func (s *side) current(ctx context.Context, t *table, r row, xid uint32, change version) (
	*table, row, version, error,
) {
	return current(ctx, s, t, r, xid, change)
}

// current returns the row of a change that lacks a value. The numbers are those of the package's
// documentation.
func current(ctx context.Context, from lookup, t *table, r row, xid uint32, change version) (
	*table, row, version, error,
) {
	var waited time.Duration
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		a, err := from.read(ctx, t, r)
		switch {
		case errors.Is(err, errLocked):
		case err != nil || a == nil:
			return nil, nil, version{}, err
		case !a.snapshot.sees(xid): // 1
		case a.row == nil: // 2
			return nil, nil, version{}, nil
		case a.xmin == strconv.FormatUint(uint64(xid), 10): // 3
			return a.table, a.row, version{change.commit, change.commit}, nil
		default:
			w, b, err := still(ctx, from, t, r, a)
			switch {
			case err != nil && !errors.Is(err, errLocked):
				return nil, nil, version{}, err
			case b != nil: // 4
				return b.table, b.row, version{w, 0}, nil
			case waited >= busyPatience: // 5
				return a.table, a.row, change, nil
			}
			waited += pause
		}
		if err := from.wait(ctx, pause); err != nil {
			return nil, nil, version{}, err
		}
	}
}

// still returns a position of the log, and the row at this position: a query before and a query
// after it saw the same row. The row is nil if it has changed, or if a transaction keeps it busy.
func still(ctx context.Context, from lookup, t *table, r row, a *reading) (w pglogrepl.LSN, b *reading, err error) {
	if w, err = from.position(ctx); err != nil {
		return 0, nil, err
	}
	if a.xmax != "0" {
		if running, err := from.runs(ctx, a); running || err != nil {
			return 0, nil, err
		}
	}
	if b, err = from.read(ctx, t, r); err != nil || b == nil || !a.same(b) {
		return 0, nil, err
	}
	return w, b, nil
}

func (s *side) position(ctx context.Context) (pglogrepl.LSN, error) {
	at, err := query(ctx, s.conn, "select pg_current_wal_insert_lsn()")
	if err != nil {
		return 0, fmt.Errorf("read the position of the log: %w", err)
	}
	return pglogrepl.ParseLSN(string(at[0][0]))
}

func (s *side) wait(ctx context.Context, d time.Duration) error { return s.alive(ctx, d) }

// runs asks for xmax in both of its meanings, because PostgreSQL does not show whether xmax is a
// transaction or a group of transactions (multixact).
func (s *side) runs(ctx context.Context, a *reading) (bool, error) {
	ids := []string{a.xmax}
	members, err := query(ctx, s.conn, "select xid::text from pg_get_multixact_members($1::xid)", a.xmax)
	var refused *pgconn.PgError
	switch {
	case err == nil:
		for _, m := range members {
			ids = append(ids, string(m[0]))
		}
	case errors.As(err, &refused) && refused.SeverityUnlocalized == "ERROR": // no group has this number
	default:
		return false, err
	}
	for _, id := range ids {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return false, fmt.Errorf("read a transaction's number: %w", err)
		}
		full := a.snapshot.full(uint32(n))
		if full >= a.snapshot.next { // it began after the snapshot
			return true, nil
		}
		state, err := query(ctx, s.conn, "select coalesce(pg_xact_status($1::xid8), '')", strconv.FormatUint(full, 10))
		if err != nil {
			return false, fmt.Errorf("read a transaction's state: %w", err)
		}
		if string(state[0][0]) == "in progress" {
			return true, nil
		}
	}
	return false, nil
}

// lockNotAvailable is PostgreSQL's code if lock_timeout has passed.
const lockNotAvailable = "55P03"

// read reads the row with the key of r, with all columns that the publication has today. It returns
// nil if the table was dropped.
func (s *side) read(ctx context.Context, t *table, r row) (*reading, error) {
	for fresh := false; ; fresh = true {
		now := s.now[t.oid]
		if now == nil || fresh {
			all, err := s.tables(ctx, t.oid)
			if err != nil {
				return nil, err
			}
			if len(all) == 0 {
				left, err := query(ctx, s.conn, "select from pg_class where oid = $1::oid", strconv.FormatUint(uint64(t.oid), 10))
				if err != nil || len(left) == 0 {
					return nil, err
				}
				return nil, fmt.Errorf("table %s has left the publication, but a value of an earlier change must be read "+
					"from it: add it to the publication again, until the bridge has passed the change", t.name)
			}
			now = all[0]
			s.now[t.oid] = now
		}
		got, known, err := s.readAs(ctx, now, t, r)
		if err != nil || known || fresh {
			return got, err
		}
	}
}

// readAs reads the row. known is false if the table has columns that now lacks.
func (s *side) readAs(ctx context.Context, now, t *table, r row) (got *reading, known bool, err error) {
	sql := "select pg_current_snapshot()::text, r.ctid::text, r.xmin::text, r.xmax::text, r.* from (select) one left join " +
		now.from() + " r on true"
	for i, at := range t.key {
		sql += fmt.Sprintf(" and r.%s = $%d", pgx.Identifier{t.columns[at].name}.Sanitize(), i+1)
	}
	if now.filter != "" {
		sql += " and (" + now.filter + ")"
	}
	values, oids := t.keyOf(r)
	result := s.conn.ExecParams(ctx, sql, values, oids, nil, nil).Read()
	var refused *pgconn.PgError
	if errors.As(result.Err, &refused) && refused.Code == lockNotAvailable {
		return nil, false, errLocked
	}
	if result.Err != nil {
		return nil, false, fmt.Errorf("read a row of table %s: %w", t.name, result.Err)
	}
	if len(result.Rows) != 1 {
		return nil, false, fmt.Errorf("table %s has %d rows with one key", t.name, len(result.Rows))
	}
	const before = 4
	values = result.Rows[0]
	got = &reading{ctid: string(values[1]), xmin: string(values[2]), xmax: string(values[3])}
	if got.snapshot, err = parseSnapshot(string(values[0])); err != nil {
		return nil, false, err
	}
	copied := *now
	copied.columns, got.table = nil, &copied
	if values[1] == nil {
		return got, true, nil
	}
	got.row = row{}
	for i, f := range result.FieldDescriptions[before:] {
		if now.hidden[f.Name] {
			continue
		}
		if now.find(f.Name) < 0 {
			return got, false, nil
		}
		encode, err := s.encoder(ctx, f.DataTypeOID)
		if err != nil {
			return nil, false, err
		}
		copied.columns = append(copied.columns, column{f.Name, f.DataTypeOID, encode})
		got.row = append(got.row, values[before+i])
	}
	return got, true, nil
}

// snapshot says which transactions a query sees. See pg_current_snapshot in PostgreSQL's
// documentation.
type snapshot struct {
	oldest  uint64 // all transactions below have ended
	next    uint64 // no transaction from here on had ended
	running map[uint64]bool
}

// parseSnapshot reads a text such as 10:20:10,14,15.
func parseSnapshot(text string) (s snapshot, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return s, fmt.Errorf("read a snapshot: %q", text)
	}
	numbers := []string{parts[0], parts[1]}
	if parts[2] != "" {
		numbers = append(numbers, strings.Split(parts[2], ",")...)
	}
	s.running = make(map[uint64]bool, len(numbers))
	for i, text := range numbers {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return s, fmt.Errorf("read a snapshot: %w", err)
		}
		switch i {
		case 0:
			s.oldest = n
		case 1:
			s.next = n
		default:
			s.running[n] = true
		}
	}
	return s, nil
}

// full returns the number of a transaction with its epoch. PostgreSQL keeps transactions within
// half of the 32 bits of each other.
func (s snapshot) full(xid uint32) uint64 {
	return uint64(int64(s.next) + int64(int32(xid-uint32(s.next))))
}

// sees reports whether a transaction that has committed is visible. It must not be a
// subtransaction.
func (s snapshot) sees(xid uint32) bool {
	full := s.full(xid)
	return full < s.oldest || full < s.next && !s.running[full]
}
