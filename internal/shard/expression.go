// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"slices"
	"strconv"
)

// Expression is a write in the form that DynamoDB accepts. Each attribute is replaced by a name
// from Names, because owner, schema and others are reserved words.
type Expression struct {
	Condition string
	Update    string // empty for a DeleteItem
	Names     map[string]string
	Values    []Value // the value n has the name ValueName(n)
}

// ValueName returns the name of the value with this number in the expressions.
func ValueName(number int) string {
	if number < len(valueNames) {
		return valueNames[number]
	}
	return valueHead + strconv.Itoa(number)
}

// These names are made only once, and not for each write.
var (
	attrNames = func() map[Attr]string {
		m := map[Attr]string{}
		for _, a := range Attrs() {
			m[a] = nameHead + string(a)
		}
		return m
	}()
	valueNames = func() (names [usualAttrs]string) {
		for i := range names {
			names[i] = valueHead + strconv.Itoa(i)
		}
		return names
	}()
)

const (
	nameHead  = "#"
	valueHead = ":v"
)

// Expression renders the write for DynamoDB. It runs for every message, so it appends to buffers
// that are large enough for a usual write.
func (w Write) Expression() Expression {
	x := expressions{
		attrs: make([]Attr, 0, usualAttrs),
		e:     Expression{Names: make(map[string]string, usualAttrs), Values: make([]Value, 0, usualAttrs)},
	}
	text := make([]byte, 0, usualText)
	for i, c := range w.Cond {
		if i > 0 {
			text = append(text, " AND "...)
		}
		text = append(text, '(')
		for j, t := range c {
			if j > 0 {
				text = append(text, " OR "...)
			}
			text = x.term(text, t)
		}
		text = append(text, ')')
	}
	x.e.Condition = string(text)
	if !w.Drop {
		x.e.Update = string(x.update(text[:0], w.Update))
	}
	return x.e
}

const (
	usualAttrs = 16
	usualText  = 512 // bytes
)

type expressions struct {
	e     Expression
	attrs []Attr // attributes that already have a name
}

func (x *expressions) name(text []byte, a Attr) []byte {
	if !slices.Contains(x.attrs, a) {
		x.attrs = append(x.attrs, a)
		n, ok := attrNames[a]
		if !ok { // an attribute of a dead letter, which is not in [Attrs]
			n = nameHead + string(a)
		}
		x.e.Names[n] = string(a)
	}
	return append(append(text, nameHead...), a...)
}

func (x *expressions) value(text []byte, v Value) []byte {
	n := slices.Index(x.e.Values, v)
	if n < 0 {
		n = len(x.e.Values)
		x.e.Values = append(x.e.Values, v)
	}
	return strconv.AppendInt(append(text, valueHead...), int64(n), 10)
}

func (x *expressions) term(text []byte, t Term) []byte {
	switch t.Op {
	case Absent:
		return append(x.name(append(text, "attribute_not_exists("...), t.Attr), ')')
	case Exists:
		return append(x.name(append(text, "attribute_exists("...), t.Attr), ')')
	case Lacks:
		text = append(x.name(append(text, "NOT contains("...), t.Attr), ", "...)
		return append(x.value(text, t.Val), ')')
	}
	sign := [...]string{
		Equal: " = ", NotEqual: " <> ", Less: " < ", AtMost: " <= ", Greater: " > ", AtLeast: " >= ",
	}[t.Op]
	// In DynamoDB, "x <> :v" is true if x is absent. In this package it is false, so the expression
	// also requires that x exists.
	if t.Op == NotEqual {
		text = append(x.name(append(text, "(attribute_exists("...), t.Attr), ") AND "...)
	}
	text = x.value(append(x.name(text, t.Attr), sign...), t.Val)
	if t.Op == NotEqual {
		text = append(text, ')')
	}
	return text
}

func (x *expressions) update(text []byte, actions []Action) []byte {
	// There is one list for each verb, because the values are numbered in the order of the actions.
	sets, removes, adds := make([]byte, 0, usualText), make([]byte, 0, usualText), make([]byte, 0, usualText)
	for _, a := range actions {
		switch a.Verb {
		case Set:
			sets = x.value(append(x.name(next(sets), a.Attr), " = "...), a.Val)
		case SetIfAbsent:
			sets = append(x.name(next(sets), a.Attr), " = if_not_exists("...)
			sets = append(x.name(sets, cmp.Or(a.From, a.Attr)), ", "...)
			sets = append(x.value(sets, a.Val), ')')
		case Copy:
			sets = x.name(append(x.name(next(sets), a.Attr), " = "...), a.From)
		case Remove:
			removes = x.name(next(removes), a.Attr)
		case Add:
			adds = x.value(append(x.name(next(adds), a.Attr), ' '), a.Val)
		}
	}
	for _, p := range [...]struct {
		verb string
		list []byte
	}{{"SET ", sets}, {"REMOVE ", removes}, {"ADD ", adds}} {
		if len(p.list) == 0 {
			continue
		}
		if len(text) > 0 {
			text = append(text, ' ')
		}
		text = append(append(text, p.verb...), p.list...)
	}
	return text
}

// next adds a comma after the last entry of a list.
func next(list []byte) []byte {
	if len(list) == 0 {
		return list
	}
	return append(list, ", "...)
}
