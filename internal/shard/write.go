package shard

import "cmp"

// Op compares an attribute with a value. An absent attribute makes every comparison false, as in
// DynamoDB.
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
)

// Term is one comparison.
type Term struct {
	Attr Attr
	Op   Op
	Val  Value
}

// Clause is a list of terms of which one must hold. A condition is a list of clauses that must all
// hold: the unit that a mutant takes away.
type Clause []Term

// Holds evaluates the term on a row.
func (t Term) Holds(r *Row) bool {
	v, ok := r.Get(t.Attr)
	switch {
	case t.Op == Absent:
		return !ok
	case t.Op == Exists:
		return ok
	case !ok:
		return false
	}
	c := v.compare(t.Val)
	return [...]bool{
		Equal: c == 0, NotEqual: c != 0, Less: c < 0, AtMost: c <= 0, Greater: c > 0, AtLeast: c >= 0,
	}[t.Op]
}

// Holds evaluates the clause on a row.
func (c Clause) Holds(r *Row) bool {
	for _, t := range c {
		if t.Holds(r) {
			return true
		}
	}
	return false
}

// Verb is what an action does to its attribute.
type Verb byte

// The actions that the updates need.
const (
	Set         Verb = iota // attr = value
	SetIfAbsent             // attr = if_not_exists(from, value); an empty from is attr itself
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

// Write is one conditional write of one item: one UpdateItem, or one DeleteItem where Drop is set.
type Write struct {
	Transition Transition
	Doc        DocID
	Cond       []Clause
	Update     []Action
	Drop       bool // delete the item instead of updating it
}

// Allowed evaluates the condition on the row as it stands.
func (w Write) Allowed(r Row) bool {
	for _, c := range w.Cond {
		if !c.Holds(&r) {
			return false
		}
	}
	return true
}

// Apply is the row after the update: what a store keeps, and how a caller knows the new row from
// the ALL_OLD image.
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
