package shardtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/lullhq/lull/internal/shard"
)

// Capabilities say what to expect of a store, and how much to ask of it.
type Capabilities struct {
	Scan     bool // it is a [shard.Scanner] too
	Claimers int  // who race for one document, 0 for 40
	Rounds   int  // of that race, 0 for 25
}

// Run is the suite. open makes a store, or another handle on a shared one.
func Run(t *testing.T, open func(t *testing.T) shard.Store, c Capabilities) {
	t.Helper()
	env := NewEnv(open(t), c)
	for _, duty := range Duties() {
		if duty.Scan && !c.Scan {
			continue
		}
		t.Run(duty.Name, func(t *testing.T) {
			t.Parallel()
			if err := duty.Check(t.Context(), env); err != nil {
				t.Error(err)
			}
		})
	}
	for _, c := range Cases() {
		t.Run(c.Title(), func(t *testing.T) {
			t.Parallel()
			if err := c.Check(t.Context(), env); err != nil {
				t.Error(err)
			}
		})
	}
}

// Env is a store under test.
type Env struct {
	Store shard.Store
	Capabilities
	run string
	seq atomic.Int64
}

// NewEnv prepares a store for [Duty.Check] and [Case.Check]. It is safe for concurrent use.
func NewEnv(s shard.Store, c Capabilities) *Env {
	if c.Claimers == 0 {
		c.Claimers = 40
	}
	if c.Rounds == 0 {
		c.Rounds = 25
	}
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return &Env{Store: s, Capabilities: c, run: "shardtest#" + hex.EncodeToString(b[:]) + "-"}
}

// Doc names a document that nobody else uses.
func (e *Env) Doc() shard.DocID { return shard.DocID(fmt.Sprintf("%s%04d", e.run, e.seq.Add(1))) }

// put makes the row of its document what r says, by a write that is always allowed.
func (e *Env) put(ctx context.Context, r shard.Row) error {
	if _, err := e.Store.Write(ctx, Put(r)); err != nil {
		return fmt.Errorf("set the row up: %w", err)
	}
	return nil
}

// Put is a write that makes the row of r's document what r says, whatever it was.
func Put(r shard.Row) shard.Write {
	w := shard.Write{Doc: r.Doc, Cond: []shard.Clause{{
		{Attr: shard.AttrSchema, Op: shard.Absent}, {Attr: shard.AttrSchema, Op: shard.Exists},
	}}}
	for _, a := range shard.Attrs() {
		if v, ok := r.Get(a); ok {
			w.Update = append(w.Update, shard.Action{Verb: shard.Set, Attr: a, Val: v})
		} else {
			w.Update = append(w.Update, shard.Action{Verb: shard.Remove, Attr: a})
		}
	}
	return w
}

// read is one consistent read.
func (e *Env) read(ctx context.Context, doc shard.DocID) (shard.Row, error) {
	rows, err := e.Store.Read(ctx, []shard.DocID{doc}, shard.Consistent)
	if err != nil {
		return shard.Row{}, fmt.Errorf("read %s: %w", doc, err)
	}
	if len(rows) != 1 {
		return shard.Row{}, fmt.Errorf("read one document: got %d rows", len(rows))
	}
	return rows[0], nil
}

// expect reads a row and compares it.
func (e *Env) expect(ctx context.Context, want shard.Row) error {
	got, err := e.read(ctx, want.Doc)
	if err != nil {
		return err
	}
	return same("row", got, want)
}

// same says in which attributes two rows differ.
func same(what string, got, want shard.Row) error {
	if got == want {
		return nil
	}
	err := fmt.Errorf("%s of %s is not as expected", what, want.Doc)
	if got.Doc != want.Doc {
		err = errors.Join(err, fmt.Errorf("doc: got %q, want %q", got.Doc, want.Doc))
	}
	for _, a := range shard.Attrs() {
		g, gok := got.Get(a)
		w, wok := want.Get(a)
		if g != w || gok != wok {
			err = errors.Join(err, fmt.Errorf("%s: got %s, want %s", a, show(g, gok), show(w, wok)))
		}
	}
	return err
}

func show(v shard.Value, ok bool) string {
	switch {
	case !ok:
		return "nothing"
	case v.Kind == shard.KindBinary:
		return shard.OrderKey(v.Text).String()
	case v.Kind == shard.KindString:
		return fmt.Sprintf("%q", v.Text)
	}
	return fmt.Sprint(v.Num)
}

// Case is one write on one row.
type Case struct {
	Name    string // goes on after the write's name: "is refused while the row is leased"
	Write   shard.Write
	Before  shard.Row
	Allowed bool
	After   shard.Row // where Allowed
}

// Title is the name of the case with its write.
func (c Case) Title() string { return c.Write.Transition.String() + " " + c.Name }

// Check runs the case on a document of its own.
func (c Case) Check(ctx context.Context, e *Env) error {
	doc := e.Doc()
	before, after, w := c.Before, c.After, c.Write
	before.Doc, after.Doc, w.Doc = doc, doc, doc
	if before.Exists() {
		if err := e.put(ctx, before); err != nil {
			return err
		}
	}
	old, err := e.Store.Write(ctx, w)
	refused, isRefused := shard.AsRefused(err)
	switch {
	case err != nil && !isRefused:
		return fmt.Errorf("write: %w", err)
	case c.Allowed && isRefused:
		return fmt.Errorf("refused, should be allowed")
	case !c.Allowed && !isRefused:
		return fmt.Errorf("allowed, should be refused")
	case !c.Allowed:
		if refused.Write != w.Transition {
			return fmt.Errorf("refusal names %s, want %s", refused.Write, w.Transition)
		}
		return errors.Join(same("image of the refusal", refused.Row, before), e.expect(ctx, before))
	}
	return errors.Join(same("image before the write", old, before), e.expect(ctx, after))
}
