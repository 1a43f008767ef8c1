// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pglogrepl"
)

// database is what the decoder asks the database.
type database interface {
	// tables returns the table with this OID as it is now, or none if it no longer exists or left
	// the publication.
	tables(ctx context.Context, oid uint32) ([]*table, error)
	// table returns a table without columns.
	table(oid uint32, schema, bare string) *table
	// encoder returns the encoder of a type.
	encoder(ctx context.Context, oid uint32) (encoder, error)
	// current returns the row with the key of r, which transaction xid has changed, with its columns
	// and its version. It is nil if the row is gone. See the package's documentation.
	current(ctx context.Context, t *table, r row, xid uint32, change version) (*table, row, version, error)
}

// decoder reads the messages of pgoutput, of protocol 1. In this protocol PostgreSQL sends whole
// transactions, one after the other.
type decoder struct {
	db     database
	tables map[uint32]*table

	xid    uint32
	commit pglogrepl.LSN // of the transaction that is being read, or 0
	at     time.Time

	counts decoderCounts
}

// decoderCounts count what is worth a look.
type decoderCounts struct {
	reads     int // rows that were read again for a value that PostgreSQL did not send
	truncates int // tables that were truncated
	keyless   int // changes of tables without a key, which are not sent
}

// end is the end of a transaction, or 0.
type end = pglogrepl.LSN

// decode reads a message that starts at a position of the log. It calls emit for each event. If the
// message ends a transaction, decode returns the transaction's end.
func (d *decoder) decode(ctx context.Context, at pglogrepl.LSN, data []byte, emit func(*event) error) (end, error) {
	m, err := parse(data)
	if err != nil {
		return 0, err
	}
	switch m := m.(type) {
	case *pglogrepl.BeginMessage:
		d.xid, d.commit, d.at = m.Xid, m.FinalLSN, m.CommitTime
		return 0, nil
	case *pglogrepl.RelationMessage:
		return 0, d.relation(ctx, m)
	case *pglogrepl.TypeMessage, *pglogrepl.OriginMessage, *pglogrepl.LogicalDecodingMessage:
		return 0, nil
	}
	if d.commit == 0 {
		return 0, fmt.Errorf("PostgreSQL sent a message of type %s outside of a transaction", m.Type())
	}
	v := version{d.commit, at}
	switch m := m.(type) {
	case *pglogrepl.CommitMessage:
		d.commit = 0
		return m.TransactionEndLSN, nil
	case *pglogrepl.InsertMessage:
		return 0, d.put(ctx, m.RelationID, nil, m.Tuple, v, emit)
	case *pglogrepl.UpdateMessage:
		return 0, d.put(ctx, m.RelationID, m.OldTuple, m.NewTuple, v, emit)
	case *pglogrepl.DeleteMessage:
		return 0, d.delete(m, v, emit)
	case *pglogrepl.TruncateMessage:
		return 0, d.truncate(m, v, emit)
	}
	return 0, fmt.Errorf("PostgreSQL sent an unknown message of type %s", m.Type())
}

// parse reads a message. The library panics if a message is cut.
func parse(data []byte) (m pglogrepl.Message, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a message of pgoutput with %d bytes is cut", len(data))
		}
	}()
	if len(data) == 0 {
		return nil, fmt.Errorf("a message of pgoutput is empty")
	}
	if m, err = pglogrepl.Parse(data); err != nil {
		return nil, fmt.Errorf("read a message of pgoutput: %w", err)
	}
	return m, nil
}

// relation remembers a table's columns. PostgreSQL sends them before the first change, and again
// after they have changed. They are those of the time of the change.
func (d *decoder) relation(ctx context.Context, m *pglogrepl.RelationMessage) error {
	t := d.db.table(m.RelationID, m.Namespace, m.RelationName)
	for i, c := range m.Columns {
		encode, err := d.db.encoder(ctx, c.DataType)
		if err != nil {
			return err
		}
		t.columns = append(t.columns, column{c.Name, c.DataType, encode})
		if c.Flags&1 != 0 && m.ReplicaIdentity != replicaIdentityFull {
			t.key = append(t.key, i)
		}
	}
	now, err := d.db.tables(ctx, m.RelationID)
	if err != nil {
		return err
	}
	if len(now) == 1 {
		t.filter, t.parent = now[0].filter, now[0].parent
		if len(t.key) == 0 { // with REPLICA IDENTITY FULL, PostgreSQL does not say which columns are the key
			for _, i := range now[0].key {
				if at := t.find(now[0].columns[i].name); at >= 0 {
					t.key = append(t.key, at)
				}
			}
		}
	}
	d.tables[m.RelationID] = t
	return nil
}

const replicaIdentityFull = 'f'

// known returns a table, and whether its rows can be sent.
func (d *decoder) known(oid uint32) (t *table, sends bool, err error) {
	t = d.tables[oid]
	if t == nil {
		return nil, false, fmt.Errorf("PostgreSQL sent a change of table %d without its columns", oid)
	}
	if len(t.key) == 0 {
		d.counts.keyless++
	}
	return t, len(t.key) > 0, nil
}

// put emits the events of an insert or an update.
func (d *decoder) put(
	ctx context.Context, oid uint32, before, after *pglogrepl.TupleData, v version, emit func(*event) error,
) error {
	t, sends, err := d.known(oid)
	if err != nil || !sends {
		return err
	}
	r, missing, err := t.row(after, before)
	if err != nil {
		return err
	}
	e := &event{kind: changed, table: t, id: t.id(r), version: v, at: d.at}
	if before != nil {
		old, _, err := t.row(before, nil)
		if err != nil {
			return err
		}
		if id := t.id(old); id != e.id {
			if err := emit(&event{kind: deleted, table: t, id: id, version: v, at: d.at}); err != nil {
				return err
			}
		}
	}
	if missing {
		d.counts.reads++
		if e.table, r, e.version, err = d.db.current(ctx, t, r, d.xid, v); err != nil || r == nil {
			return err
		}
	}
	e.row = r
	return emit(e)
}

func (d *decoder) delete(m *pglogrepl.DeleteMessage, v version, emit func(*event) error) error {
	t, sends, err := d.known(m.RelationID)
	if err != nil || !sends {
		return err
	}
	old, _, err := t.row(m.OldTuple, nil)
	if err != nil {
		return err
	}
	return emit(&event{kind: deleted, table: t, id: t.id(old), version: v, at: d.at})
}

// truncate emits an event for each truncated table.
func (d *decoder) truncate(m *pglogrepl.TruncateMessage, v version, emit func(*event) error) error {
	for _, oid := range m.RelationIDs {
		t, _, err := d.known(oid)
		if err != nil {
			return err
		}
		d.counts.truncates++
		if err := emit(&event{kind: truncated, table: t, id: t.name, version: v, at: d.at}); err != nil {
			return err
		}
	}
	return nil
}

// row returns the values of a row. A large value that did not change is taken from the old row, if
// PostgreSQL sent it. Otherwise missing is true.
func (t *table) row(of, old *pglogrepl.TupleData) (r row, missing bool, err error) {
	if of == nil || len(of.Columns) != len(t.columns) || old != nil && len(old.Columns) != len(t.columns) {
		return nil, false, fmt.Errorf("PostgreSQL sent a row of table %s with other columns than it announced", t.name)
	}
	r = make(row, len(of.Columns))
	for i, c := range of.Columns {
		if c.DataType == pglogrepl.TupleDataTypeToast && old != nil {
			c = old.Columns[i]
			if c.DataType == pglogrepl.TupleDataTypeNull { // only the key was sent
				c = of.Columns[i]
			}
		}
		switch c.DataType {
		case pglogrepl.TupleDataTypeNull:
		case pglogrepl.TupleDataTypeText:
			if r[i] = c.Data; r[i] == nil {
				r[i] = []byte{}
			}
		case pglogrepl.TupleDataTypeToast:
			missing = true
		default:
			return nil, false, fmt.Errorf("PostgreSQL sent a value of table %s in the form %q", t.name, c.DataType)
		}
	}
	return r, missing, nil
}
