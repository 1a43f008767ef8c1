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

	"github.com/lullhq/lull/internal/letter"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/sink"
)

// The files beside the index in a data folder.
const (
	rowsFile    = "rows.ndjson"
	lettersFile = "letters.ndjson"
)

// Save writes rows and dead letters to the data folder, so that the next run refuses what this one has made old. Messages that are not settled are
// not kept.
func (e *Engine) Save(ctx context.Context, dir string) error {
	err := replaceFile(filepath.Join(dir, rowsFile), func(f *os.File) error {
		w := bufio.NewWriter(f)
		enc := json.NewEncoder(w)
		for cursor := ""; ; {
			rows, next, err := e.Shards.Scan(ctx, 0, 1, cursor, 1000)
			if err != nil {
				return err
			}
			for _, r := range rows {
				if err := enc.Encode(settled(r)); err != nil {
					return err
				}
			}
			if cursor = next; cursor == "" {
				return w.Flush()
			}
		}
	})
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, lettersFile), func(f *os.File) error {
		w := bufio.NewWriter(f)
		enc := json.NewEncoder(w)
		for cursor := ""; ; {
			facts, next, err := e.Letters.List(ctx, letter.Filter{}, cursor, 1000)
			if err != nil {
				return err
			}
			for _, f := range facts {
				l, ok, err := e.Letters.Get(ctx, f.ID)
				if err != nil {
					return err
				}
				if !ok {
					continue
				}
				l.Key = shard.OrderKey(l.Key.String())
				if err := enc.Encode(l); err != nil {
					return err
				}
			}
			if cursor = next; cursor == "" {
				return w.Flush()
			}
		}
	})
}

// settled is the row without what belongs to messages that are gone when the process ends.
func settled(r shard.Row) map[string]any {
	item := map[string]any{"doc": r.Doc}
	for _, a := range []shard.Attr{
		shard.AttrSchema, shard.AttrVersionClass, shard.AttrCommitted, shard.AttrCommittedOp, shard.AttrDead, shard.AttrLastWrite,
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

// Load reads what Save wrote and then raises the rows to what the sinks hold: a run that was killed saved nothing, but the
// sink knows what it was given. Only the deletes of a killed run are forgotten.
func (e *Engine) Load(ctx context.Context, dir string) error {
	err := eachLine(filepath.Join(dir, rowsFile), func(line []byte) error {
		var item map[string]json.RawMessage
		if err := json.Unmarshal(line, &item); err != nil {
			return err
		}
		var doc shard.DocID
		if err := json.Unmarshal(item["doc"], &doc); err != nil {
			return err
		}
		w := shard.Write{Name: "LOAD", Doc: doc}
		for _, a := range shard.Attrs() {
			raw, ok := item[string(a)]
			if !ok {
				continue
			}
			v, err := loadValue(a, raw)
			if err != nil {
				return err
			}
			w.Update = append(w.Update, shard.Action{Verb: shard.Set, Attr: a, Val: v})
		}
		_, err := e.Shards.Write(ctx, w)
		e.ledger.knows(doc, w.Apply(shard.Row{}).Committed)
		return err
	})
	if err != nil {
		return err
	}
	err = eachLine(filepath.Join(dir, lettersFile), func(line []byte) error {
		var l letter.Letter
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		if l.Key != "" {
			k, err := shard.ParseOrderKey(string(l.Key))
			if err != nil {
				return err
			}
			l.Key = k
		}
		_, err := e.Letters.Park(ctx, l)
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range e.order {
		if r, ok := e.pipes[name].sink.(sink.Reader); ok {
			if err := r.All(ctx, func(s sink.Stored) error { return e.raise(ctx, s) }); err != nil {
				return fmt.Errorf("read back sink %s: %w", name, err)
			}
		}
	}
	return nil
}

// raise makes the row at least as new as the document in the sink.
func (e *Engine) raise(ctx context.Context, s sink.Stored) error {
	k, err := shard.ParseOrderKey(s.Key)
	if err != nil {
		return nil //nolint:nilerr // not written by lull: it has no row
	}
	rows, err := e.Shards.Read(ctx, []shard.DocID{s.Doc}, shard.Consistent)
	if err != nil || rows[0].Committed >= k {
		return err
	}
	p, err := k.Parts()
	if err != nil {
		return err
	}
	r := rows[0]
	r.VersionClass, r.Committed, r.CommittedOp = p.Version.Class(), k, shard.Put
	r.LastWrite = max(r.LastWrite, shard.Micros(s.Fence))
	r.ExpiresAt = e.cfg.Expires(e.clk.Now())
	w := shard.Write{Name: "LOAD", Doc: s.Doc}
	for _, a := range shard.Attrs() {
		if v, ok := r.Get(a); ok {
			w.Update = append(w.Update, shard.Action{Verb: shard.Set, Attr: a, Val: v})
		}
	}
	_, err = e.Shards.Write(ctx, w)
	e.ledger.knows(s.Doc, k)
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
	s.Buffer(nil, 64<<20)
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
