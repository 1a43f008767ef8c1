// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lullhq/lull/internal/operator/bridge"
)

// Stream is the changes of a database's tables, as a broker of package bridge.
type Stream struct {
	Database
	// Beside is what is wrong with a copy that runs beside the stream, or "". It is nil for no
	// copy.
	Beside func() string

	now facts[streamFacts]
}

var (
	_ bridge.Broker   = (*Stream)(nil)
	_ bridge.Reporter = (*Stream)(nil)
)

const (
	// confirmEvery is how often PostgreSQL hears what is confirmed, also if that has not changed:
	// after wal_sender_timeout without a report, PostgreSQL ends the connection.
	confirmEvery = time.Second
	// lookEvery is how often the slot's facts are read.
	lookEvery = 10 * time.Second
	// parting bounds how long Close waits.
	parting = 3 * time.Second
)

// unreserved is the wal_status of a slot that the next checkpoint may invalidate.
const unreserved = "unreserved"

type streamFacts struct {
	slotFacts
	decoderCounts
	looked time.Time
}

// Open connects and begins to read the slot.
func (d *Stream) Open(ctx context.Context) (_ bridge.Session, err error) {
	conn, err := d.connect(ctx, false)
	if err != nil {
		return nil, err
	}
	s := &stream{
		session: newSession[pglogrepl.LSN](d.Prefetch), d: d, sql: conn,
	}
	defer func() {
		if err != nil {
			s.disconnect()
		}
	}()
	opening, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	beside := &side{catalog: d.catalog(conn), now: map[uint32]*table{}, alive: s.wait}
	s.decoder = decoder{db: beside, tables: map[uint32]*table{}}
	if err := d.check(opening, conn); err != nil {
		return nil, err
	}
	all, err := beside.tables(opening, 0)
	if err != nil {
		return nil, explain("read the publication", err)
	}
	if err := d.checkTables(all); err != nil {
		return nil, err
	}
	if err := s.look(opening); err != nil {
		return nil, err
	}
	if s.conn, err = d.connect(ctx, true); err != nil {
		return nil, err
	}
	// From position 0, PostgreSQL begins at the confirmed one.
	err = pglogrepl.StartReplication(opening, s.conn, d.Slot, 0, pglogrepl.StartReplicationOptions{PluginArgs: []string{
		"proto_version '1'", "publication_names '" + identifierInText(d.Publication) + "'",
	}})
	if err != nil {
		return nil, explain("read slot "+d.Slot, err)
	}
	s.start(ctx, s.run)
	return s, nil
}

// Report implements [bridge.Reporter].
func (d *Stream) Report() (facts []slog.Attr, problem string) {
	f := d.now.get()
	if f.status == "" {
		return nil, ""
	}
	facts = []slog.Attr{
		slog.String("slot", d.Slot), slog.String("confirmed_lsn", f.confirmed), slog.Int64("lag_bytes", f.lag),
		slog.Int64("wal_kept_bytes", f.kept), slog.String("wal_status", f.status), slog.Int("rows_read", f.reads),
		slog.Int("truncates", f.truncates), slog.Int("without_key", f.keyless),
	}
	if f.safe >= 0 {
		facts = append(facts, slog.Int64("wal_safe_bytes", f.safe))
	}
	if d.Beside != nil {
		problem = d.Beside()
	}
	switch {
	case f.status == unreserved:
		problem = "the slot is nearly lost: PostgreSQL keeps more log for it than max_slot_wal_keep_size allows"
	case f.keyless > 0:
		problem = "a table has no primary key, and its rows are not sent: add one, or take it out of the publication"
	case time.Since(f.looked) > time.Minute:
		problem = "the slot was not looked at since " + f.looked.UTC().Format(time.RFC3339)
	}
	return facts, problem
}

// stream is one connection that reads the slot. One goroutine uses both connections.
type stream struct {
	*session[pglogrepl.LSN]
	d         *Stream
	conn, sql *pgconn.PgConn // for replication, and for queries
	decoder   decoder
	reported  time.Time // when PostgreSQL last heard the position
	looked    time.Time
}

// run reads the stream until the session ends.
func (s *stream) run(ctx context.Context) {
	defer s.disconnect()
	err := s.follow(ctx)
	if errors.Is(err, errStopped) { // confirmations still arrive until Close
		close(s.messages)
		for err = nil; err == nil && ctx.Err() == nil; err = s.tell(ctx, false) {
			select {
			case <-s.ledger.freed:
			case <-time.After(confirmEvery):
			case <-ctx.Done():
			}
		}
	} else {
		defer close(s.messages) // after the error is known
	}
	if ctx.Err() == nil {
		s.finish(err)
		return
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	_ = s.tell(last, true) // without it, rows are sent again
}

// follow reads messages until Stop, or the end of the session.
func (s *stream) follow(ctx context.Context) error {
	for {
		if err := s.tell(ctx, false); err != nil {
			return err
		}
		if s.ledger.full() {
			if err := s.pause(ctx, confirmEvery); err != nil {
				return err
			}
			// PostgreSQL cannot end a connection whose client does not read. A checkpoint that must
			// invalidate the slot would wait for it, and keep all further log.
			if s.d.now.get().status == unreserved && s.ledger.full() {
				return errors.New("the slot is nearly lost, and lull's queue does not accept rows: PostgreSQL may take it")
			}
			continue
		}
		select {
		case <-s.stopping:
			return errStopped
		default:
		}
		data, err := s.receive(ctx)
		if err != nil {
			return err
		}
		if len(data) > 0 {
			if err := s.copied(ctx, data); err != nil {
				return err
			}
		}
	}
}

// receive returns the next message of the stream, or nil after a moment without one.
func (s *stream) receive(ctx context.Context) ([]byte, error) {
	wait, cancel := context.WithTimeout(ctx, confirmEvery)
	defer cancel()
	m, err := s.conn.ReceiveMessage(wait)
	switch {
	case err != nil && pgconn.Timeout(err) && ctx.Err() == nil && !s.conn.IsClosed():
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the stream: %w", err)
	}
	switch m := m.(type) {
	case *pgproto3.CopyData:
		return m.Data, nil
	case *pgproto3.ErrorResponse:
		return nil, explain("read the stream", pgconn.ErrorResponseToPgError(m))
	case *pgproto3.CopyDone:
		return nil, errors.New("PostgreSQL ended the stream")
	}
	return nil, nil
}

// copied handles a message of the stream.
func (s *stream) copied(ctx context.Context, data []byte) error {
	switch data[0] {
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		alive, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		if err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		// PostgreSQL has sent everything before this position. If all of it is confirmed, the log
		// of other tables and databases need not be kept.
		s.ledger.skip(func(at pglogrepl.LSN) pglogrepl.LSN { return max(at, alive.ServerWALEnd) })
		if alive.ReplyRequested {
			s.reported = time.Time{}
		}
	case pglogrepl.XLogDataByteID:
		x, err := pglogrepl.ParseXLogData(data[1:])
		if err != nil {
			return fmt.Errorf("read the stream: %w", err)
		}
		if len(x.WALData) > 0 && x.WALData[0] == byte(pglogrepl.MessageTypeBegin) {
			s.ledger.begin()
		}
		end, err := s.decoder.decode(ctx, x.WALStart, x.WALData, func(e *event) error { return s.emit(ctx, e) })
		if err != nil {
			return err
		}
		if end != 0 {
			s.ledger.commit(end)
		}
	}
	return nil
}

// wait waits between two tries of a query, and keeps the stream alive.
func (s *stream) wait(ctx context.Context, d time.Duration) error {
	if err := s.pause(ctx, d); err != nil {
		return err
	}
	return s.tell(ctx, false)
}

// emit passes an event to the bridge.
func (s *stream) emit(ctx context.Context, e *event) error {
	if e.kind == truncated {
		s.d.Log.Error("a table was truncated, and PostgreSQL does not say which rows it had: lull makes a dead letter. "+
			"Compare with the table (lull index check), then drop the dead letter", "table", e.table.name)
	}
	return s.hand(ctx, e, func() error { return s.tell(ctx, false) })
}

// tell reports the position to PostgreSQL, if it is due, and looks at the slot.
func (s *stream) tell(ctx context.Context, now bool) error {
	if !now && time.Since(s.reported) < confirmEvery {
		return nil
	}
	at, _ := s.ledger.position() // PostgreSQL ignores position 0
	err := pglogrepl.SendStandbyStatusUpdate(ctx, s.conn, pglogrepl.StandbyStatusUpdate{WALWritePosition: at})
	if err != nil {
		return fmt.Errorf("report the position: %w", err)
	}
	s.reported = time.Now()
	if !now && time.Since(s.looked) > lookEvery {
		return s.look(ctx)
	}
	return nil
}

// look reads the slot's facts.
func (s *stream) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	f, err := s.d.look(ctx, s.sql)
	if err != nil {
		return err
	}
	s.looked = time.Now()
	s.d.now.set(streamFacts{f, s.decoder.counts, s.looked})
	return nil
}

// disconnect closes the connections.
func (s *stream) disconnect() {
	ctx, cancel := context.WithTimeout(context.Background(), parting)
	defer cancel()
	for _, c := range []*pgconn.PgConn{s.conn, s.sql} {
		if c != nil {
			_ = c.Close(ctx) // PostgreSQL notices either way
		}
	}
}
