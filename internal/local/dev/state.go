package dev

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// Save writes rows, dead letters and scheduled events to the data folder, so that the next run
// refuses what this one has made old. Messages that are not settled are not kept.
func (e *Engine) Save(ctx context.Context, f *Folder) error {
	for _, part := range []struct {
		file  string
		write func(context.Context, *json.Encoder) error
	}{{rowsFile, e.saveRows}, {lettersFile, e.saveLetters}, {scheduledFile, e.saveScheduled}} {
		err := replaceFile(filepath.Join(f.dir, part.file), private, func(to *os.File) error {
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
	return f.settle()
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

func (e *Engine) saveRows(ctx context.Context, enc *json.Encoder) error {
	return pages(func(cursor string) (string, error) {
		rows, next, err := e.Shards.Scan(ctx, 0, 1, cursor, statePage)
		for _, r := range rows {
			if err == nil {
				err = enc.Encode(settled(r))
			}
		}
		return next, err
	})
}

// savedLetter is a line of lettersFile.
type savedLetter struct {
	deadletter.Letter
	Base64 []byte `json:",omitempty"` // the body, where it is no text
}

func (e *Engine) saveLetters(ctx context.Context, enc *json.Encoder) error {
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
			l.Key = shard.OrderKey(l.Key.String()) // packed keys are no text
			s := savedLetter{Letter: l}
			if !utf8.ValidString(l.Body) {
				s.Body, s.Base64 = "", []byte(l.Body)
			}
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
	saved := map[string]bool{} // one that was sent and is stored still is in both lists
	save := func(items []schedule.Item) error {
		for _, it := range items {
			if saved[it.ID] {
				continue
			}
			saved[it.ID] = true
			it.Key = shard.OrderKey(it.Key.String())
			if err := enc.Encode(it); err != nil {
				return err
			}
		}
		return nil
	}
	sent, err := e.copies.unsettled(ctx, e.Shards)
	if err != nil {
		return err
	}
	if err := save(sent); err != nil {
		return err
	}
	return pages(func(cursor string) (string, error) {
		items, next, err := e.Schedule.Due(ctx, e.clk.Now().Add(farAway), cursor, statePage)
		if err == nil {
			err = save(items)
		}
		return next, err
	})
}

// settled is the row without what belongs to messages that are gone when the process ends.
func settled(r shard.Row) map[string]any {
	item := map[string]any{"doc": r.Doc}
	for _, a := range []shard.Attr{
		shard.AttrSchema, shard.AttrVersionClass, shard.AttrCommitted, shard.AttrCommittedOp, shard.AttrDead,
		shard.AttrLastWrite,
		shard.AttrExpiresAt, shard.AttrLeaseUntil, shard.AttrRanAt, shard.AttrCursor,
	} {
		switch v, ok := r.Get(a); {
		case !ok:
		case v.Kind == shard.KindBinary:
			item[string(a)] = base64.StdEncoding.EncodeToString([]byte(v.Text))
		case v.Kind == shard.KindNumber:
			item[string(a)] = v.Num
		default:
			item[string(a)] = v.Text
		}
	}
	return item
}

// Load reads what Save wrote and then raises the rows to the deletes that were noted and to what
// the sinks hold: a run that was killed saved nothing else. Call it before Start.
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
	for _, name := range e.order {
		r, ok := e.pipes[name].sink.(sink.Reader)
		if !ok {
			continue
		}
		err := r.All(ctx, func(s sink.Stored) error {
			k, err := shard.ParseOrderKey(s.Key)
			if err != nil {
				return nil //nolint:nilerr // not written by lull: it has no row
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
	var item map[string]json.RawMessage
	if err := json.Unmarshal(line, &item); err != nil {
		return err
	}
	var doc shard.DocID
	if err := json.Unmarshal(item["doc"], &doc); err != nil {
		return fmt.Errorf("doc: %w", err)
	}
	w := shard.Write{Doc: doc}
	for _, a := range shard.Attrs() {
		raw, ok := item[string(a)]
		if !ok {
			continue
		}
		v, err := loadValue(a, raw)
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		w.Update = append(w.Update, shard.Action{Verb: shard.Set, Attr: a, Val: v})
	}
	_, err := e.Shards.Write(ctx, w)
	e.ledger.knows(doc, w.Apply(shard.Row{}).Committed)
	return err
}

func (e *Engine) loadLetter(ctx context.Context, line []byte) error {
	var s savedLetter
	if err := json.Unmarshal(line, &s); err != nil {
		return err
	}
	l := s.Letter
	if s.Base64 != nil {
		l.Body = string(s.Base64)
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
	e.ledger.awaits(it.Doc, it.Key)
	return e.Schedule.Put(ctx, it)
}

// loadDelete takes a noted delete. A process that is killed may leave half a line behind, which is
// the last one.
func (e *Engine) loadDelete(ctx context.Context, line []byte) error {
	var d deleted
	if err := json.Unmarshal(line, &d); err != nil {
		return nil //nolint:nilerr // see above: its sink's write is repeated by whoever sends the message again
	}
	k, err := loadKey(shard.OrderKey(d.Key))
	if err != nil {
		return err
	}
	return e.raise(ctx, d.Doc, k, shard.Delete, shard.Micros(d.At))
}

// loadKey reads a printed key; none is none.
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
	w := shard.Write{Doc: doc}
	for _, a := range shard.Attrs() {
		if v, ok := r.Get(a); ok {
			w.Update = append(w.Update, shard.Action{Verb: shard.Set, Attr: a, Val: v})
		}
	}
	_, err = e.Shards.Write(ctx, w)
	e.ledger.knows(doc, k)
	return err
}

func loadValue(a shard.Attr, raw json.RawMessage) (shard.Value, error) {
	if n := json.Number(raw); len(raw) > 0 && raw[0] != '"' {
		i, err := n.Int64()
		return shard.Value{Kind: shard.KindNumber, Num: i}, err
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return shard.Value{}, err
	}
	switch a {
	case shard.AttrCommitted, shard.AttrDead:
		b, err := base64.StdEncoding.DecodeString(s)
		return shard.Value{Kind: shard.KindBinary, Text: string(b)}, err
	}
	return shard.Value{Kind: shard.KindString, Text: s}, nil
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
	s.Buffer(nil, maxLine)
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
