// SPDX-License-Identifier: Apache-2.0

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

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
)

// Earlier builds, which had no state.db, kept rows, dead letters, scheduled events and deletes in
// these files.
const (
	rowsFile      = "rows.ndjson"
	lettersFile   = "letters.ndjson"
	scheduledFile = "scheduled.ndjson"
	deletesFile   = "deletes.ndjson"
)

// deleted is a line of deletesFile.
type deleted struct {
	Doc shard.DocID `json:"doc"`
	Key string      `json:"key"`
	At  int64       `json:"at"` // microseconds
}

// savedRow is a line of rowsFile. A savedRow lacks the attributes of a row that describe messages,
// because earlier builds lost the messages when the process ended. Order keys are bytes, in base64.
// The JSON names are the names of the attributes in the table.
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

// savedLetter is a line of lettersFile.
type savedLetter struct {
	deadletter.Letter
	Base64 []byte `json:",omitempty"` // the body, if it is not UTF-8
	Shared bool   `json:",omitempty"` // the body and the attributes are in an earlier line with the same hash
}

// takeOver moves the state of an earlier build into state.db. If takeOver is interrupted, the next
// run repeats it.
func (e *Engine) takeOver(ctx context.Context, f *Folder) error {
	parts := []struct {
		file string
		line func(context.Context, []byte) error
	}{
		{rowsFile, e.loadRow},
		{lettersFile, e.loadLetter},
		{scheduledFile, e.loadScheduled},
		{deletesFile, e.loadDelete},
	}
	for _, part := range parts {
		err := eachLine(filepath.Join(f.dir, part.file), func(line []byte) error { return part.line(ctx, line) })
		if err != nil {
			return err
		}
	}
	f.Flush()
	err := f.Fault()
	for _, part := range parts {
		if err == nil {
			if err = os.Remove(filepath.Join(f.dir, part.file)); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
	}
	if err != nil {
		return fmt.Errorf("import the data of an earlier lull: %w", err)
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

// loaded writes a row to the table unconditionally.
func (e *Engine) loaded(ctx context.Context, r shard.Row) error {
	w := shard.Write{Doc: r.Doc}
	for _, a := range shard.Attrs() {
		if v, ok := r.Get(a); ok {
			w.Update = append(w.Update, shard.Action{Verb: shard.Set, Attr: a, Val: v})
		}
	}
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
	return e.Schedule.Put(ctx, it)
}

// loadDelete reads a line with a delete. If the last process was killed, the last line may be
// incomplete. loadDelete ignores such a line.
func (e *Engine) loadDelete(ctx context.Context, line []byte) error {
	var d deleted
	if err := json.Unmarshal(line, &d); err != nil {
		return nil //nolint:nilerr // see above: the sender sends this line again, so lull writes the delete again
	}
	k, err := loadKey(shard.OrderKey(d.Key))
	if err != nil {
		return err
	}
	return e.raise(ctx, d.Doc, k, shard.Delete, shard.Micros(d.At))
}

// loadKey parses the printed form of an order key, which may be empty.
func loadKey(printed shard.OrderKey) (shard.OrderKey, error) {
	if printed == "" {
		return "", nil
	}
	return shard.ParseOrderKey(string(printed))
}

// raise sets the committed version of a row to the given order key, unless the row has a newer one.
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
	r.ExpiresAt = e.cfg.Lifecycle.Expires(e.clk.Now())
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
	defer func() { _ = file.Close() }() // an error does not matter, because the file was only read
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
