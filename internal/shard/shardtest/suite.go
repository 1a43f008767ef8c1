// SPDX-License-Identifier: Apache-2.0

package shardtest

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/lullhq/lull/internal/seam/storetest"
	"github.com/lullhq/lull/internal/shard"
)

// Capabilities describes a store, and how much the suite asks of it.
type Capabilities struct {
	Scan     bool // the store is also a [shard.Scanner]
	Claimers int  // how many claimers race for one document; 0 means 40
	Rounds   int  // how often the claimers race; 0 means 25
}

// Run runs the whole suite for a store.
func Run(t *testing.T, s shard.Store, c Capabilities) {
	t.Helper()
	check := func(name string, check func(*Env)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(NewEnv(t, s, c))
		})
	}
	for _, duty := range Duties() {
		if c.Scan || !duty.Scan {
			check(duty.Name, duty.Check)
		}
	}
	for _, c := range Cases() {
		check(c.Title(), c.Check)
	}
}

// Env is a store under test, and the test that reports its faults.
type Env struct {
	testing.TB
	Store shard.Store
	Capabilities
	run string
	seq int
}

// NewEnv prepares a store for a [Duty.Check] or for any number of [Case.Check].
func NewEnv(t testing.TB, s shard.Store, c Capabilities) *Env {
	c.Claimers, c.Rounds = cmp.Or(c.Claimers, 40), cmp.Or(c.Rounds, 25)
	return &Env{TB: t, Store: s, Capabilities: c, run: "shardtest#" + rand.Text()[:12] + "-"}
}

// Doc returns the key of a document that no other test uses.
func (e *Env) Doc() shard.DocID {
	e.seq++
	return shard.DocID(fmt.Sprintf("%s%04d", e.run, e.seq))
}

// put writes a row over any row that the store had before.
func (e *Env) put(r shard.Row) {
	e.Helper()
	_, err := e.Store.Write(e.Context(), Put(r))
	storetest.OK(e, "set the row up", err)
}

// Put returns a write that replaces a row with r. The condition of this write is always true.
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

// try executes a write that may be refused. In both cases, image is the row before the write.
func (e *Env) try(w shard.Write) (image shard.Row, allowed bool) {
	e.Helper()
	image, err := e.Store.Write(e.Context(), w)
	refused, isRefused := shard.AsRefused(err)
	switch {
	case isRefused && refused.Write != w.Transition:
		e.Errorf("refusal names %s, want %s", refused.Write, w.Transition)
	case isRefused:
		image = refused.Row
	case err != nil:
		e.Errorf("%s: %v", w.Transition, err)
	}
	return image, err == nil
}

// read reads rows, and checks that there is one row for each document.
func (e *Env) read(c shard.Consistency, docs ...shard.DocID) []shard.Row {
	e.Helper()
	rows, err := e.Store.Read(e.Context(), docs, c)
	storetest.OK(e, "read", err)
	if len(rows) != len(docs) {
		e.Fatalf("read %d documents: got %d rows", len(docs), len(rows))
	}
	return rows
}

// row reads one row consistently.
func (e *Env) row(doc shard.DocID) shard.Row { e.Helper(); return e.read(shard.Consistent, doc)[0] }

func (e *Env) expect(want shard.Row) { e.Helper(); e.same("row", e.row(want.Doc), want) }

// same reports the attributes in which two rows differ.
func (e *Env) same(what string, got, want shard.Row) {
	e.Helper()
	if got == want {
		return
	}
	e.Errorf("%s of %s is not as expected; its document is %q", what, want.Doc, got.Doc)
	for _, a := range shard.Attrs() {
		g, gok := got.Get(a)
		w, wok := want.Get(a)
		if g != w || gok != wok {
			e.Errorf("%s: got %s, want %s", a, show(g, gok), show(w, wok))
		}
	}
}

func show(v shard.Value, ok bool) string {
	switch {
	case !ok:
		return "nothing"
	case v.Kind == shard.KindBinary:
		return shard.OrderKey(v.Text).String()
	case v.Kind == shard.KindKeySet:
		return fmt.Sprint(shard.KeySet(v.Text).Keys())
	case v.Kind == shard.KindString:
		return fmt.Sprintf("%q", v.Text)
	}
	return fmt.Sprint(v.Num)
}

// Case is one write on one row, with the expected result.
type Case struct {
	Name    string // the rest of the sentence after the write's name: "is refused while the row is leased"
	Write   shard.Write
	Before  shard.Row
	Allowed bool
	After   shard.Row // set only if Allowed
}

// Title returns the name of the write and the name of the case.
func (c Case) Title() string { return c.Write.Transition.String() + " " + c.Name }

// Check runs the case on a new document.
func (c Case) Check(e *Env) {
	before, after, w := c.Before, c.After, c.Write
	w.Doc = e.Doc()
	before.Doc, after.Doc = w.Doc, w.Doc
	if before.Exists() {
		e.put(before)
	}
	image, allowed := e.try(w)
	if allowed != c.Allowed {
		e.Fatalf("allowed: %t, want %t", allowed, c.Allowed)
	}
	e.same("image", image, before)
	if !allowed {
		after = before
	}
	e.expect(after)
}
