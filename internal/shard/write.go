// SPDX-License-Identifier: Apache-2.0

package shard

import "cmp"

// Op compares an attribute with a value. If the attribute is absent, only Absent is true, and every
// other comparison is false. In DynamoDB, `<>` and `NOT contains` are true for an absent attribute.
type Op byte

// The comparisons that the conditions need.
const (
	Absent Op = iota
	Exists
	Equal
	NotEqual
	Less
	AtMost
	Greater
	AtLeast
	// Lacks is true if the attribute is a set that does not contain the value. A clause with Lacks
	// also has Absent, so that DynamoDB and this package agree.
	Lacks
)

// Term is one comparison.
type Term struct {
	Attr Attr
	Op   Op
	Val  Value
}

// Clause is a list of terms, and at least one of them must hold. A condition is a list of clauses
// that must all hold. Mutation tests remove one clause at a time.
type Clause []Term

// Holds reports whether the term is true for a row.
func (t Term) Holds(r *Row) bool {
	v, ok := r.Get(t.Attr)
	switch {
	case t.Op == Absent:
		return !ok
	case t.Op == Exists:
		return ok
	case !ok:
		return false
	case t.Op == Lacks:
		return !KeySet(v.Text).Has(OrderKey(t.Val.Text))
	}
	c := v.compare(t.Val)
	return [...]bool{
		Equal: c == 0, NotEqual: c != 0, Less: c < 0, AtMost: c <= 0, Greater: c > 0, AtLeast: c >= 0,
	}[t.Op]
}

// Holds reports whether one of the terms is true for a row.
func (c Clause) Holds(r *Row) bool {
	for _, t := range c {
		if t.Holds(r) {
			return true
		}
	}
	return false
}

// Verb says what an action does to its attribute.
type Verb byte

// The actions that the updates need.
const (
	Set         Verb = iota // attr = value
	SetIfAbsent             // attr = if_not_exists(from, value); an empty from means attr
	Copy                    // attr = from
	Remove                  // REMOVE attr
	Add                     // ADD attr value
)

// Action is one part of an update. Every action reads the row as it was before the update, as in
// DynamoDB.
type Action struct {
	Verb Verb
	Attr Attr
	From Attr
	Val  Value
}

// Write is one conditional write of one item: an UpdateItem, or a DeleteItem if Drop is set.
type Write struct {
	Transition Transition
	Doc        DocID
	Cond       []Clause
	Update     []Action
	Drop       bool // delete the item instead of updating it
}

// Allowed reports whether the condition holds for the row.
func (w Write) Allowed(r Row) bool {
	for _, c := range w.Cond {
		if !c.Holds(&r) {
			return false
		}
	}
	return true
}

// Apply returns the row after the update. A store in memory keeps this row. Other callers apply the
// write to the old row that the store returned, to know the new row.
func (w Write) Apply(old Row) Row {
	r := old
	r.Doc = w.Doc
	if w.Drop {
		return Row{Doc: w.Doc}
	}
	for _, a := range w.Update {
		switch a.Verb {
		case Set:
			r.Set(a.Attr, a.Val)
		case SetIfAbsent:
			v, ok := old.Get(cmp.Or(a.From, a.Attr))
			if !ok {
				v = a.Val
			}
			r.Set(a.Attr, v)
		case Copy:
			v, _ := old.Get(a.From)
			r.Set(a.Attr, v)
		case Remove:
			r.Set(a.Attr, Value{})
		case Add:
			v, _ := old.Get(a.Attr)
			r.Set(a.Attr, numberValue(v.Num+a.Val.Num))
		}
	}
	return r
}
