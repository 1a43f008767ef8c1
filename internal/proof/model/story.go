// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Story returns a counterexample as numbered lines in the words of the design. A flight keeps its
// name from line to line, although the order of executions changes between states.
func (m Model) Story(path []Step[State]) []string {
	var names [maxExecs]string
	next := 'A'
	var lines []string
	for n, step := range path {
		for i, f := range step.Raw.Execs {
			if names[i] == "" && f != (Exec{}) {
				names[i] = string(next)
				next++
			}
		}
		l := step.Label
		text := l.render(names[min(l.Exec, maxExecs-1)], m.version(l.Key), m.messages(l.Messages))
		lines = append(lines, fmt.Sprintf("%2d. %s", n+1, text))
		names = m.follow(step.Raw, names)
	}
	return lines
}

// follow moves the names to the places that the executions have in the canonical state.
func (m Model) follow(raw State, names [maxExecs]string) (out [maxExecs]string) {
	m.tidy(&raw)
	order := []int{0, 1, 2}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank(raw.Execs[b]), rank(raw.Execs[a])) })
	for i, was := range order {
		if raw.Execs[was] != (Exec{}) {
			out[i] = names[was]
		}
	}
	return out
}

func (m Model) version(k Key) string {
	name := m.Bounds.Names[min(k, MaxKey)]
	if name == "" {
		name = fmt.Sprintf("v%d", k)
	}
	if m.Bounds.Deletes.Has(k) {
		name += " (delete)"
	}
	return name
}

// messages names messages by their versions. Copies of the same version get a prime.
func (m Model) messages(set Set) string {
	var out []string
	seen := map[Message]int{}
	for i, msg := range m.Bounds.Messages {
		kind := msg
		kind.Spare = false
		copies := seen[kind]
		seen[kind]++
		if !set.Has(i) {
			continue
		}
		var events []string
		for k := range msg.Keys.All() {
			events = append(events, m.version(k))
		}
		if msg.Other {
			events = append(events, "another document's event")
		}
		name := strings.Join(events, " and ")
		if len(events) > 1 {
			name = "the message of " + name
		}
		out = append(out, name+strings.Repeat("'", copies))
	}
	return strings.Join(out, ", ")
}

// content names the state of the source in the sink, if the state differs from the sink's version.
func (m Model) content(s Sink) string {
	switch {
	case !m.Bounds.References || s.Body == s.Content || m.Bounds.Deletes.Has(s.Content):
		return ""
	case s.Body == None || m.gone(s):
		return " as a delete"
	}
	return " with the content of " + m.version(s.Body)
}

// Describe describes a state in words, for the end of a story.
func (m Model) Describe(s State) string {
	var out []string
	add := func(f string, args ...any) { out = append(out, fmt.Sprintf(f, args...)) }
	if s.Sink.Content == None {
		add("the sink is empty")
	} else {
		add("the sink holds %s%s", m.version(s.Sink.Content), m.content(s.Sink))
	}
	add("row: %s", m.row(s.Row))
	for _, p := range []struct {
		place Place
		name  string
	}{{Queued, "in the queue: "}, {HeldPlace, "held: "}, {DeadQueue, "in the dead-letter queue: "}} {
		if set := s.messagesAt(p.place); set != 0 {
			add("%s%s", p.name, m.messages(set))
		}
	}
	for k := Key(1); k <= MaxKey; k++ {
		if state := s.DeadLetters[k]; state != NoDeadLetter {
			add("%s is a dead letter%s", m.version(k), [...]string{Parked: "", Redriven: ", marked as redriven"}[state])
		}
	}
	return strings.Join(out, "; ")
}

func (m Model) row(r Row) string {
	if !r.Exists {
		return "none"
	}
	var out []string
	for _, a := range []struct {
		name string
		key  Key
	}{
		{"pending", r.Pending},
		{"committed", r.Committed},
		{"claimed", r.Claimed},
		{"claimed_was", r.ClaimedWas},
		{"dead", r.Dead},
	} {
		switch a.key {
		case None:
		case Lowest:
			out = append(out, a.name+" lowest")
		default:
			out = append(out, a.name+" "+m.version(a.key))
		}
	}
	if r.Floor {
		out = append(out, "reset")
	}
	switch {
	case r.Lease:
		out = append(out, "leased")
	case r.Owner != 0:
		out = append(out, "owner set, lease over")
	}
	if len(out) == 0 {
		return "nothing but its key"
	}
	return strings.Join(out, ", ")
}
