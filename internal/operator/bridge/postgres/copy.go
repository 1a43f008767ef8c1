// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lullhq/lull/internal/operator/bridge"
)

// Copy is the rows that the tables have, as a broker of package bridge. It ends the bridge when
// lull's queue has all rows. A [Stream] of the same slot must run at the same time, or later.
type Copy struct {
	Database
	// File keeps how far the copy is. A copy that was stopped or killed continues there. If the
	// file says that a table was copied, it is not copied again.
	File string

	now facts[map[string]tableDone]
}

var (
	_ bridge.Broker   = (*Copy)(nil)
	_ bridge.Reporter = (*Copy)(nil)
)

// pageRows is how many rows a query of the copy reads.
const pageRows = 1000

// Open takes a snapshot and begins to read the tables that are left. It waits until the
// transactions that are open have ended.
func (d *Copy) Open(ctx context.Context) (_ bridge.Session, err error) {
	sql, err := d.connect(ctx, false)
	if err != nil {
		return nil, err
	}
	s := &copying{
		session: newSession[place](d.Prefetch), d: d, sql: sql, whole: map[string]tableDone{},
	}
	defer func() {
		if err != nil {
			s.disconnect()
		}
	}()
	opening, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := d.check(opening, sql); err != nil {
		return nil, err
	}
	if _, err := d.look(opening, sql); err != nil { // the slot must be older than the snapshot
		return nil, err
	}
	all, err := d.catalog(sql).tables(opening, 0)
	if err != nil {
		return nil, explain("read the publication", err)
	}
	if err := d.checkTables(all); err != nil {
		return nil, err
	}
	replication, err := d.connect(ctx, true)
	if err != nil {
		return nil, err
	}
	defer replication.Close(context.WithoutCancel(ctx)) //nolint:errcheck // its slot ends with it either way
	system, err := pglogrepl.IdentifySystem(opening, replication)
	if err != nil {
		return nil, explain("identify the server", err)
	}
	s.progress, err = load(d.File, progress{System: system.SystemID, Database: system.DBName, Slot: d.Slot})
	if err != nil {
		return nil, &bridge.Ended{Err: err}
	}
	for _, t := range all {
		if !s.progress.Tables[t.name].Done {
			s.tables = append(s.tables, t)
		}
	}
	d.now.set(maps.Clone(s.progress.Tables))
	if len(s.tables) == 0 {
		return nil, &bridge.Ended{}
	}
	d.Log.Info("the copy takes a snapshot: it waits until the open transactions have ended", "tables", len(s.tables))
	if err := s.snapshot(ctx, replication); err != nil {
		return nil, err
	}
	s.start(ctx, s.run)
	return s, nil
}

// Report implements [bridge.Reporter].
func (d *Copy) Report() (facts []slog.Attr, problem string) {
	rows, left := 0, []string{}
	for name, t := range d.now.get() {
		if rows += t.Rows; !t.Done {
			left = append(left, name)
		}
	}
	return []slog.Attr{slog.Int("copied", rows), slog.Any("copying", left)}, ""
}

// place is a place in a copy: behind a row of a table.
type place struct {
	table string
	tableDone
}

// copying is one snapshot that is read.
type copying struct {
	*session[place]
	d        *Copy
	sql      *pgconn.PgConn
	at       pglogrepl.LSN // the position of the snapshot
	tables   []*table
	progress progress             // what is confirmed
	whole    map[string]tableDone // the tables that were read to their ends
}

// snapshot exports a snapshot with a temporary slot, and uses it in a transaction. After that the
// slot is not needed any more.
func (s *copying) snapshot(ctx context.Context, replication *pgconn.PgConn) error {
	name := "lull_copy_" + strings.ToLower(rand.Text())
	made, err := pglogrepl.CreateReplicationSlot(ctx, replication, name, "pgoutput",
		pglogrepl.CreateReplicationSlotOptions{Temporary: true, SnapshotAction: "EXPORT_SNAPSHOT"})
	if err != nil {
		return explain("take a snapshot", err)
	}
	if s.at, err = pglogrepl.ParseLSN(made.ConsistentPoint); err != nil {
		return err
	}
	_, err = s.sql.Exec(ctx, "begin isolation level repeatable read read only; set transaction snapshot '"+
		strings.ReplaceAll(made.SnapshotName, "'", "''")+"'").ReadAll()
	return explain("use the snapshot", err)
}

// run reads the tables, and ends the session when all rows are confirmed.
func (s *copying) run(ctx context.Context) {
	defer s.disconnect()
	var err error
	for _, t := range s.tables {
		if err == nil {
			err = s.table(ctx, t)
		}
	}
	for err == nil && !s.ledger.empty() {
		err = s.pauseSaving(ctx)
	}
	if err == nil {
		err = s.save()
	}
	if errors.Is(err, errStopped) { // confirmations still arrive until Close
		close(s.messages)
		<-ctx.Done()
		_ = s.save() // without it, rows are sent again
		return
	}
	if err == nil {
		err = &bridge.Ended{}
	}
	s.finish(err)
	close(s.messages) // after the error is known
}

// table reads the rows of a table that are left.
func (s *copying) table(ctx context.Context, t *table) error {
	at := place{t.name, s.progress.Tables[t.name]}
	for more := true; more; {
		var err error
		if at, more, err = s.page(ctx, t, at); err != nil {
			return err
		}
	}
	at.Done, at.After = true, nil
	s.whole[t.name] = at.tableDone
	s.ledger.begin()
	s.ledger.commit(at)
	return nil
}

// page reads the rows behind a place, in the order of the key. It returns the place behind them.
func (s *copying) page(ctx context.Context, t *table, at place) (_ place, more bool, err error) {
	var columns, key []string
	for _, c := range t.columns {
		columns = append(columns, pgx.Identifier{c.name}.Sanitize())
	}
	var values [][]byte
	var oids []uint32
	var marks []string
	for i, of := range t.key {
		key = append(key, columns[of])
		if len(at.After) == len(t.key) {
			values, oids = append(values, []byte(at.After[i])), append(oids, t.columns[of].oid)
			marks = append(marks, fmt.Sprintf("$%d", i+1))
		}
	}
	sql := "select " + strings.Join(columns, ", ") + " from " + t.from() + " where true"
	if len(marks) > 0 {
		sql += " and (" + strings.Join(key, ", ") + ") > (" + strings.Join(marks, ", ") + ")"
	}
	if t.filter != "" {
		sql += " and (" + t.filter + ")"
	}
	sql += fmt.Sprintf(" order by %s limit %d", strings.Join(key, ", "), pageRows)
	result := s.sql.ExecParams(ctx, sql, values, oids, nil, nil)
	s.ledger.begin()
	n := 0
	for ; result.NextRow(); n++ {
		r := make(row, len(t.columns))
		for i, v := range result.Values() {
			if v != nil {
				r[i] = append([]byte{}, v...)
			}
		}
		e := &event{kind: changed, table: t, id: t.id(r), version: version{s.at, 0}, row: r}
		if err := s.emit(ctx, e); err != nil {
			return at, false, err
		}
		keys, _ := t.keyOf(r)
		at.After = nil
		for _, k := range keys {
			at.After = append(at.After, string(k))
		}
	}
	if _, err := result.Close(); err != nil {
		return at, false, fmt.Errorf("read table %s: %w", t.name, err)
	}
	at.Rows += n
	s.ledger.commit(at)
	return at, n == pageRows, s.save()
}

// emit passes an event to the bridge.
func (s *copying) emit(ctx context.Context, e *event) error {
	for s.ledger.full() {
		if err := s.pauseSaving(ctx); err != nil {
			return err
		}
	}
	return s.hand(ctx, e, s.save)
}

// pauseSaving waits for a confirmation, and stores how far the copy is.
func (s *copying) pauseSaving(ctx context.Context) error {
	if err := s.pause(ctx, confirmEvery); err != nil {
		return err
	}
	return s.save()
}

// save stores how far the copy is.
func (s *copying) save() error {
	at, moved := s.ledger.position()
	if !moved {
		return nil
	}
	for _, t := range s.tables {
		if t.name == at.table {
			break
		}
		s.progress.Tables[t.name] = s.whole[t.name] // the place has passed this table's end
	}
	s.progress.Tables[at.table] = at.tableDone
	if err := s.progress.save(s.d.File); err != nil {
		return &bridge.Ended{Err: fmt.Errorf("--copy: %w", err)}
	}
	s.d.now.set(maps.Clone(s.progress.Tables))
	return nil
}

func (s *copying) disconnect() {
	ctx, cancel := context.WithTimeout(context.Background(), parting)
	defer cancel()
	_ = s.sql.Close(ctx) // the transaction ends either way
}
