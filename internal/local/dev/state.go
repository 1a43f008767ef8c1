package dev

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/feed"
	"github.com/lullhq/lull/internal/local/wholefile"
	"github.com/lullhq/lull/internal/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Save writes rows, dead letters and scheduled events to the data folder, so that the next run
// refuses what this one has made old. Messages that are not settled are lost.
func (e *Engine) Save(ctx context.Context, f *Folder) error {
	for _, part := range []struct {
		file  string
		write func(context.Context, *json.Encoder) error
	}{{rowsFile, e.saveRows}, {lettersFile, e.saveLetters}, {scheduledFile, e.saveScheduled}} {
		// What a data folder holds comes from documents: only its owner may read it.
		err := wholefile.Write(filepath.Join(f.dir, part.file), 0o600, func(to *os.File) error {
			w := bufio.NewWriter(to)
			if err := part.write(ctx, json.NewEncoder(w)); err != nil {
				return err
			}
			return w.Flush()
		})
		if err != nil {
			return err
		}
	}
	return f.forgetDeletes()
}

// pages calls next with a cursor until it answers none.
func pages(next func(cursor string) (string, error)) error {
	for cursor := ""; ; {
		var err error
		if cursor, err = next(cursor); cursor == "" || err != nil {
			return err
		}
	}
}

const statePage = 1000

// savedRow is a line of rowsFile: a row without what belongs to messages that are gone when the
// process ends. Order keys are bytes, in base64; the names are the table's.
type savedRow struct {
	Doc          shard.DocID     `json:"doc"`
	Schema       int64           `json:"schema,omitempty"`
	VersionClass shard.Class     `json:"version_class,omitempty"`
	Committed    []byte          `json:"committed,omitempty"`
	CommittedOp  shard.Operation `json:"committed_op,omitempty"`
	Dead         []byte          `json:"dead,omitempty"`
	LastWrite    shard.Micros    `json:"last_write,omitempty"`
	ExpiresAt    int64           `json:"expires_at,omitempty"`
	LeaseUntil   shard.Micros    `json:"lease_until,omitempty"`
	RanAt        shard.Micros    `json:"ran_at,omitempty"`
	Cursor       string          `json:"cursor,omitempty"`
}

func (e *Engine) saveRows(ctx context.Context, enc *json.Encoder) error {
	return pages(func(cursor string) (string, error) {
		rows, next, err := e.Shards.Scan(ctx, 0, 1, cursor, statePage)
		for _, r := range rows {
			err = errors.Join(err, enc.Encode(savedRow{
				Doc: r.Doc, Schema: r.Schema, VersionClass: r.VersionClass, Committed: []byte(r.Committed),
				CommittedOp: r.CommittedOp, Dead: []byte(r.Dead), LastWrite: r.LastWrite, ExpiresAt: r.ExpiresAt,
				LeaseUntil: r.LeaseUntil, RanAt: r.RanAt, Cursor: r.Cursor,
			}))
		}
		return next, err
	})
}

// savedLetter is a line of lettersFile.
type savedLetter struct {
	deadletter.Letter
	Base64 []byte `json:",omitempty"` // the body, where it is not UTF-8
	Shared bool   `json:",omitempty"` // body and attributes are those of an earlier line with its hash
}

func (e *Engine) saveLetters(ctx context.Context, enc *json.Encoder) error {
	written := map[string]bool{} // messages, by their hashes
	return pages(func(cursor string) (string, error) {
		facts, next, err := e.Letters.List(ctx, deadletter.Filter{}, cursor, statePage)
		if err != nil {
			return "", err
		}
		for _, f := range facts {
			l, ok, err := e.Letters.Get(ctx, f.ID)
			if err != nil {
				return "", err
			}
			if !ok {
				continue
			}
			l.Key = shard.OrderKey(l.Key.String()) // a packed key is not UTF-8
			s := savedLetter{Letter: l}
			switch {
			case written[l.Hash]:
				s.Body, s.Attributes, s.Shared = "", nil, true
			case !utf8.ValidString(l.Body):
				s.Body, s.Base64 = "", []byte(l.Body)
			}
			written[l.Hash] = true
			if err := enc.Encode(s); err != nil {
				return "", err
			}
		}
		return next, nil
	})
}

// farAway is later than any event may be scheduled.
const farAway = 100 * 365 * 24 * time.Hour

func (e *Engine) saveScheduled(ctx context.Context, enc *json.Encoder) error {
	items, err := e.copies.pending(ctx, e.Shards)
	if err != nil {
		return err
	}
	err = pages(func(cursor string) (string, error) {
		due, next, err := e.Schedule.Due(ctx, e.clk.Now().Add(farAway), cursor, statePage)
		items = append(items, due...)
		return next, err
	})
	saved := map[string]bool{} // an event that was sent and is not yet deleted from the store is listed twice
	for _, it := range items {
		if err != nil || saved[it.ID] {
			continue
		}
		saved[it.ID] = true
		it.Key = shard.OrderKey(it.Key.String())
		err = enc.Encode(it)
	}
	return err
}

// Load reads what Save wrote. A run that was killed saved nothing: so Load then raises the rows to
// the deletes that were noted and to what the sinks hold. Call it before Start.
func (e *Engine) Load(ctx context.Context, f *Folder) error {
	for _, part := range []struct {
		file string
		line func(context.Context, []byte) error
	}{
		{rowsFile, e.loadRow},
		{lettersFile, e.loadLetter},
		{scheduledFile, e.loadScheduled},
		{deletesFile, e.loadDelete},
	} {
		err := eachLine(filepath.Join(f.dir, part.file), func(line []byte) error { return part.line(ctx, line) })
		if err != nil {
			return err
		}
	}
	for name, r := range e.readers() {
		err := r.All(ctx, func(s sink.Stored) error {
			k, err := shard.ParseOrderKey(s.Key)
			if err != nil {
				return nil //nolint:nilerr // lull did not write this document: it has no row
			}
			return e.raise(ctx, s.Doc, k, shard.Put, shard.Micros(s.Fence))
		})
		if err != nil {
			return fmt.Errorf("read back sink %s: %w", name, err)
		}
	}
	return nil
}

func (e *Engine) loadRow(ctx context.Context, line []byte) error {
	var s savedRow
	if err := json.Unmarshal(line, &s); err != nil {
		return err
	}
	return e.loaded(ctx, shard.Row{
		Doc: s.Doc, Schema: s.Schema, VersionClass: s.VersionClass, Committed: shard.OrderKey(s.Committed),
		CommittedOp: s.CommittedOp, Dead: shard.OrderKey(s.Dead), LastWrite: s.LastWrite, ExpiresAt: s.ExpiresAt,
		LeaseUntil: s.LeaseUntil, RanAt: s.RanAt, Cursor: s.Cursor,
	})
}

// loaded puts a row into the table as it is.
func (e *Engine) loaded(ctx context.Context, r shard.Row) error {
	w := shard.Write{Doc: r.Doc}
	for _, a := range shard.Attrs() {
		if v, ok := r.Get(a); ok {
			w.Update = append(w.Update, shard.Action{Verb: shard.Set, Attr: a, Val: v})
		}
	}
	e.ledger.Knows(r.Doc, r.Committed)
	_, err := e.Shards.Write(ctx, w)
	return err
}

func (e *Engine) loadLetter(ctx context.Context, line []byte) error {
	var s savedLetter
	if err := json.Unmarshal(line, &s); err != nil {
		return err
	}
	l := s.Letter
	switch {
	case s.Base64 != nil:
		l.Body = string(s.Base64)
	case s.Shared:
		others, err := e.Letters.Message(ctx, l.Hash)
		if err != nil || len(others) == 0 {
			return errors.Join(err, fmt.Errorf("dead letter %s: no line before it has its message", l.ID))
		}
		other, _, err := e.Letters.Get(ctx, others[0].ID)
		if err != nil {
			return err
		}
		l.Body, l.Attributes = other.Body, other.Attributes
	}
	k, err := loadKey(l.Key)
	if err != nil {
		return err
	}
	l.Key = k
	if _, err = e.Letters.Park(ctx, l); err != nil || l.State != deadletter.Redriven {
		return err
	}
	return e.Letters.MarkRedriven(ctx, l.ID, l.RedrivenAt, false)
}

func (e *Engine) loadScheduled(ctx context.Context, line []byte) error {
	var it schedule.Item
	if err := json.Unmarshal(line, &it); err != nil {
		return err
	}
	k, err := loadKey(it.Key)
	if err != nil {
		return err
	}
	it.Key = k
	e.ledger.Awaits(it.Doc, it.Key)
	return e.Schedule.Put(ctx, it)
}

// loadDelete takes a noted delete. A process that is killed may leave half a line behind, which is
// the last one.
func (e *Engine) loadDelete(ctx context.Context, line []byte) error {
	var d deleted
	if err := json.Unmarshal(line, &d); err != nil {
		return nil //nolint:nilerr // see above: the sender sends the message again, and the delete is written again
	}
	k, err := loadKey(shard.OrderKey(d.Key))
	if err != nil {
		return err
	}
	return e.raise(ctx, d.Doc, k, shard.Delete, shard.Micros(d.At))
}

// loadKey reads a printed key, empty for none.
func loadKey(printed shard.OrderKey) (shard.OrderKey, error) {
	if printed == "" {
		return "", nil
	}
	return shard.ParseOrderKey(string(printed))
}

// raise makes the row at least as new as a version that was written.
func (e *Engine) raise(ctx context.Context, doc shard.DocID, k shard.OrderKey, op shard.Operation,
	written shard.Micros,
) error {
	rows, err := e.Shards.Read(ctx, []shard.DocID{doc}, shard.Consistent)
	if err != nil || rows[0].Committed >= k {
		return err
	}
	p, err := k.Parts()
	if err != nil {
		return err
	}
	r := rows[0]
	r.VersionClass, r.Committed, r.CommittedOp = p.Version.Class(), k, op
	r.LastWrite = max(r.LastWrite, written)
	r.ExpiresAt = e.cfg.Expires(e.clk.Now())
	return e.loaded(ctx, r)
}

func eachLine(path string, f func([]byte) error) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	defer func() { _ = file.Close() }() // read only
	s := bufio.NewScanner(file)
	s.Buffer(nil, feed.MaxLine)
	for n := 1; s.Scan(); n++ {
		if err := f(s.Bytes()); err != nil {
			return fmt.Errorf("load %s line %d: %w", path, n, err)
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("load %s: %w", path, err)
	}
	return nil
}
