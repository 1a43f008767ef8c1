// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/config/tree"
	"github.com/lullhq/lull/setting"
)

// Lines are the lines of a settings file, by the dotted name of the setting on each line.
type Lines map[string]int

// LinesOf returns the lines of a file.
func LinesOf(root tree.Node) Lines {
	lines := Lines{}
	lines.add(root, at{})
	return lines
}

func (l Lines) add(n tree.Node, p at) {
	for _, f := range n.Fields {
		below := p.key(printable(f.Key))
		l[below.name] = f.Line
		l.add(f.Value, below)
	}
	for i, item := range n.Items {
		l[p.index(i).name] = item.Line
		l.add(item, p.index(i))
	}
}

// Locate sets the line of each [Fault] in an error. It is the line of the setting, or else the line
// of the source, collection or sink that lacks the setting. If the file has neither, the line stays
// 0.
func (l Lines) Locate(err error) {
	for _, f := range Faults(err) {
		if f.Line == 0 {
			f.Line = l[f.Setting]
		}
		if parent := strings.LastIndex(f.Setting, "."); f.Line == 0 && strings.Count(f.Setting, ".") > 1 {
			f.Line = l[f.Setting[:parent]]
		}
	}
}

// Origin says where the value of a setting comes from.
type Origin string

// The origins.
const (
	OfFile    Origin = "yours"   // the file sets the value
	OfDefault Origin = "default" // the value is lull's own default
	OfOthers  Origin = "derived" // the value follows from other settings
)

// Value is a setting in force, or a number that follows from the settings.
type Value struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	From    Origin `json:"from"`
	Line    int    `json:"line,omitempty"` // the line of the file that sets the value, if there is one
	Why     string `json:"why,omitempty"`  // the settings from which a derived value follows
}

// Effective lists every setting that has a value, in the order of lull.yaml, and then the numbers
// that follow from the settings. Values contain no passwords. The settings must be valid.
func (c *Config) Effective(lines Lines) []Value {
	var all []Value
	resolved := c.Resolve()
	resolved.Collections = maps.Clone(c.Collections)
	for name, o := range c.Collections {
		d := c.For(name)
		if len(o.Sinks) == 0 {
			o.Sink = c.SinksFor(name)[0]
		}
		o.Quiet, o.MaxWait, o.CapGrace = &d.Quiet, &d.MaxWait, &d.CapGrace
		o.MinInterval, o.Leading = &d.MinInterval, &d.Leading
		resolved.Collections[name] = o
	}
	walk(reflect.ValueOf(resolved), at{}, func(p at, v reflect.Value) {
		text := inFull(v)
		if element := strings.LastIndex(p.name, "["); byName()[p.generic].Unit == setting.UnitList {
			name := p.name[:element]
			if last := len(all) - 1; last >= 0 && all[last].Setting == name {
				all[last].Value = strings.TrimSuffix(all[last].Value, "]") + ", " + text + "]"
				return
			}
			p.name, text = name, "["+text+"]"
		}
		value := Value{Setting: p.name, Value: text, From: OfDefault, Line: lines[p.name]}
		switch words := byName()[p.generic].Default; {
		case value.Line > 0:
			value.From = OfFile
		case v.Kind() == reflect.String && v.String() == "":
			return
		case words != "" && words != text && !strings.Contains(p.generic, ":"): // an option of a kind has the kind's default
			value.From, value.Why = OfOthers, words
		}
		all = append(all, value)
	})
	return append(all, c.Follows()...)
}

// inFull returns a value as lull.yaml writes it, without passwords.
func inFull(v reflect.Value) string {
	if v.Kind() == reflect.String && v.String() != "" {
		return redact(v.String())
	}
	return written(v)
}

// Follows returns the numbers that follow from the settings, as docs/settings.md explains them.
func (c *Config) Follows() []Value {
	var all []Value
	add := func(name, value, why string) {
		all = append(all, Value{Setting: name, Value: value, From: OfOthers, Why: why})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sinks)) {
		if !LeaseIsKnown(c.Sinks[name]) {
			continue
		}
		add("lease of sink "+printable(name), setting.FormatDuration(c.Lease(name)), "index.timeout + index.guard + applyDelay")
		add("first ambiguous retry of sink "+printable(name), setting.FormatDuration(c.AmbiguousRetry(name)),
			"flight.ambiguousRetry, or the lease in whole seconds")
	}
	for _, name := range c.knownCollections() {
		d := c.For(name)
		add("freshness of "+printable(name), setting.FormatDuration(c.Fresh(name)), "quiet + queues.live.window + 1s, at p99")
		add("executions of "+printable(name), string(c.Flight.KindFor(max(d.Quiet, d.MinInterval))),
			"flight.kind; with auto standard where quiet or minInterval is "+setting.FormatDuration(BreakEven)+" or longer")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sinks)) {
		add("messages held by the queue of sink "+printable(name), fmt.Sprintf("%.0f", math.Ceil(c.holding(name))),
			fmt.Sprintf("queues.expectedRate x how long each is held: at most the queues.maxInFlight of %d", c.Queues.MaxInFlight))
	}
	add("maxReceiveCount of every queue", fmt.Sprint(c.Retry.MaxReceiveCount()), "retry.deadDeadline")
	return all
}
