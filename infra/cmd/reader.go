// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lullhq/lull/infra"
	"github.com/lullhq/lull/internal/seam/flight"
)

// contextOf returns the context from the CDK command line. Without a context, it returns an empty
// map.
func contextOf(lookup func(string) (string, bool)) (context map[string]any, err error) {
	if text, _ := lookup(envContext); text != "" {
		err = json.Unmarshal([]byte(text), &context)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", envContext, err)
	}
	return context, nil
}

// reader reads the options and collects their faults.
type reader struct {
	get  func(option) string
	errs []error
}

func (r *reader) fault(o option, problem string) {
	r.errs = append(r.errs, fmt.Errorf("%s %s", o.env, problem))
}

func (r *reader) flag(o option) bool {
	v, err := strconv.ParseBool(r.get(o))
	if err != nil {
		r.fault(o, "is neither true nor false: "+r.get(o))
	}
	return v
}

func (r *reader) count(o option, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		r.fault(o, "is not a whole number: "+text)
	}
	return n
}

func (r *reader) warm() (t infra.Throughput) {
	switch pair := r.list(optWarm); len(pair) {
	case 0:
	case 2:
		t.Reads, t.Writes = r.count(optWarm, pair[0]), r.count(optWarm, pair[1])
	default:
		r.fault(optWarm, "is not READS,WRITES: "+r.get(optWarm))
	}
	return t
}

var errNotARN = errors.New("not an ARN")

// pairs reads a list of names and values. The argument form describes one entry, for faults.
func pairs[K ~string, V any](r *reader, o option, form string, parse func(string) (V, error)) map[K]V {
	m := make(map[K]V)
	for _, item := range r.list(o) {
		name, value, _ := strings.Cut(item, "=")
		v, err := parse(value)
		if err != nil {
			r.fault(o, "is not a list of "+form+": "+item)
			continue
		}
		m[K(name)] = v
	}
	return m
}

// targets reads [SINK][/LANE]=ARN. Without SINK and LANE, the target is the default sink and the
// live lane.
func (r *reader) targets(o option) []target {
	var all []target
	for _, item := range r.list(o) {
		t := target{option: o, lane: flight.Live, arn: item}
		if where, arn, ok := strings.Cut(item, "="); ok {
			sink, lane, named := strings.Cut(where, "/")
			t.sink, t.arn = sink, arn
			if named {
				t.lane = flight.Lane(lane)
			}
		}
		all = append(all, t)
	}
	return all
}

// list splits at commas, blanks and line ends.
func (r *reader) list(o option) []string {
	return strings.FieldsFunc(r.get(o), func(c rune) bool { return c == ',' || c == ' ' || c == '\n' })
}
