package shard

import (
	"strconv"
	"strings"
)

// Expression is a write as DynamoDB takes it. Every attribute goes through Names (owner, schema and
// others are reserved words).
type Expression struct {
	Condition string
	Update    string // empty for a DeleteItem
	Names     map[string]string
	Values    map[string]Value
}

// Expression renders the write.
func (w Write) Expression() Expression {
	x := expressions{e: Expression{Names: map[string]string{}, Values: map[string]Value{}}}
	conds := make([]string, len(w.Cond))
	for i, c := range w.Cond {
		terms := make([]string, len(c))
		for j, t := range c {
			terms[j] = x.term(t)
		}
		conds[i] = "(" + strings.Join(terms, " OR ") + ")"
	}
	x.e.Condition = strings.Join(conds, " AND ")
	if !w.Drop {
		x.e.Update = x.update(w.Update)
	}
	return x.e
}

type expressions struct {
	e    Expression
	seen map[Value]string
}

func (x *expressions) name(a Attr) string {
	n := "#" + string(a)
	x.e.Names[n] = string(a)
	return n
}

func (x *expressions) value(v Value) string {
	if n, ok := x.seen[v]; ok {
		return n
	}
	if x.seen == nil {
		x.seen = map[Value]string{}
	}
	n := ":v" + strconv.Itoa(len(x.seen))
	x.seen[v], x.e.Values[n] = n, v
	return n
}

func (x *expressions) term(t Term) string {
	n := x.name(t.Attr)
	switch t.Op {
	case Absent:
		return "attribute_not_exists(" + n + ")"
	case Exists:
		return "attribute_exists(" + n + ")"
	}
	sign := [...]string{Equal: "=", NotEqual: "<>", Less: "<", AtMost: "<=", Greater: ">", AtLeast: ">="}[t.Op]
	// "x <> :v" is true for an absent x in DynamoDB, and false here: say it in full.
	if t.Op == NotEqual {
		return "(attribute_exists(" + n + ") AND " + n + " <> " + x.value(t.Val) + ")"
	}
	return n + " " + sign + " " + x.value(t.Val)
}

func (x *expressions) update(actions []Action) string {
	var sets, removes, adds []string
	for _, a := range actions {
		n := x.name(a.Attr)
		switch a.Verb {
		case Set:
			sets = append(sets, n+" = "+x.value(a.Val))
		case SetIfAbsent:
			sets = append(sets, n+" = if_not_exists("+n+", "+x.value(a.Val)+")")
		case Copy:
			sets = append(sets, n+" = "+x.name(a.From))
		case CopyOr:
			sets = append(sets, n+" = if_not_exists("+x.name(a.From)+", "+x.value(a.Val)+")")
		case Remove:
			removes = append(removes, n)
		case Add:
			adds = append(adds, n+" "+x.value(a.Val))
		}
	}
	var parts []string
	for _, p := range []struct {
		verb string
		list []string
	}{{"SET ", sets}, {"REMOVE ", removes}, {"ADD ", adds}} {
		if len(p.list) > 0 {
			parts = append(parts, p.verb+strings.Join(p.list, ", "))
		}
	}
	return strings.Join(parts, " ")
}
