// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/lullhq/lull/sink"
)

// Validate returns every fault of the settings at once, as one joined error; Faults splits that
// error. If it returns nil, lull keeps its promises with these settings. Validate changes nothing.
func (c *Config) Validate() error { return c.ValidateAs(KindsLinked) }

// ValidateAs is Validate for settings that may name kinds which this program does not link.
func (c *Config) ValidateAs(kinds Kinds) error {
	fs := faults{list: c.faults(kinds)}
	return fs.err()
}

// ValidateDeployed is Validate for settings that are to be deployed. It also refuses sinks that
// exist only in one process.
func (c *Config) ValidateDeployed() error { return c.validateDeployed(KindsLinked) }

// placeholder matches an address with one of the host names that RFC 2606 reserves for examples.
var placeholder = regexp.MustCompile(`^[a-z]+://([^/@]*[.@])?example\.(com|net|org)([:/]|$)`)

// Placeholders returns, joined, a fault for each placeholder address that `lull new` wrote.
func (c *Config) Placeholders() error {
	var fs faults
	walk(reflect.ValueOf(*c), at{}, func(p at, v reflect.Value) {
		if v.Kind() == reflect.String && placeholder.MatchString(v.String()) {
			fs.add(&Fault{
				Rule: "placeholder", Setting: p.name, Value: written(v),
				Problem: "is an example address from the documentation", Fix: "write your own address",
			})
		}
	})
	return fs.err()
}

func (c *Config) validateDeployed(kinds Kinds) error {
	fs := faults{list: c.faults(kinds)}
	for _, name := range slices.Sorted(maps.Keys(c.Sinks)) {
		if kind, ok := sink.Lookup(c.Sinks[name].Kind); ok && !kind.Deployable() {
			fs.add(&Fault{
				Rule: "deployed-sink", Setting: "sinks." + name + ".kind", Value: kind.Name,
				Problem: "exists in one process only: a deployed function would lose it",
				Fix:     "write " + deployable() + ", and its url",
			})
		}
	}
	return fs.err()
}

// faults checks the bounds of each setting, and then the rules between settings. It does not stop
// at the first fault (promise 7), but only at maxFaults.
func (c *Config) faults(kinds Kinds) []*Fault {
	var fs faults
	walk(reflect.ValueOf(*c), at{}, func(p at, v reflect.Value) {
		if fs.full() {
			return
		}
		if f := judge(p, v, kinds); f != nil {
			fs.add(f)
		}
	})
	able := c.capable()
	for _, r := range rules {
		if fs.full() {
			break
		}
		r.check(able, &checker{faults: &fs, rule: r.Name})
	}
	return fs.list
}

// Rule is one thing that must hold between settings.
type Rule struct {
	// Name is the name of the rule, as Fault.Rule contains it.
	Name string
	// Doc says what must hold and why.
	Doc string

	check func(c *Config, f *checker)
}

var rules = slices.Concat(
	nameRules,
	partRules,
	sourceRules,
	sinkRules,
	payloadRules,
	enrichRules,
	verifyRules,
	visibilityRules,
	burstRules,
	recoveryRules,
	ageRules,
	loadRules,
	capacityRules,
	[]Rule{memoryRule, canaryRule},
)

// each returns a check that calls check for every item of a list.
func each[T any](list func(*Config) []T, check func(c *Config, f *checker, item T)) func(*Config, *checker) {
	return func(c *Config, f *checker) {
		for _, item := range list(c) {
			if f.faults.full() {
				return
			}
			check(c, f, item)
		}
	}
}

// checker adds the faults of one rule.
type checker struct {
	faults *faults
	rule   string
}

// ignored refuses a setting that has no effect, because it belongs to other kinds than the one that
// is set.
func (f *checker) ignored(path, name, value, kinds string) {
	if value != "" {
		f.fault(path+"."+name, value, "has no effect: it belongs to the kind "+kinds,
			"remove it, or set "+path+".kind to "+kinds)
	}
}

// fault adds a fault. The value may be nil, a text, or a value of any type that lull.yaml has.
func (f *checker) fault(setting string, value any, problem, fix string) {
	text := ""
	if value != nil {
		text = written(reflect.ValueOf(value))
	}
	f.faults.add(&Fault{Rule: f.rule, Setting: setting, Value: text, Problem: problem, Fix: fix})
}
