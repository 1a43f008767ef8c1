// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// broken is one way to break one rule.
type broken struct {
	rule string
	name string
	// holds changes the settings so that the rule only just holds. It is nil if the defaults
	// suffice.
	holds func(c *Config)
	// breaks runs after holds, and changes the settings so that they break the rule.
	breaks func(c *Config)
	// setting is the setting that the fault must name, and fix is a part of the fault's advice.
	setting, fix string
	// not is a text that the advice must not contain.
	not string
	// also lists other faults that the change necessarily causes, as rule:setting.
	also []string
}

// label returns the name of a fault in the form of broken.also.
func label(f *Fault) string { return f.Rule + ":" + f.Setting }

func (b broken) run(t *testing.T) {
	t.Parallel()
	c := Default()
	if b.holds != nil {
		b.holds(&c)
		if err := c.Validate(); err != nil {
			t.Fatalf("the rule just holds: got %v, want no fault", err)
		}
	}
	b.breaks(&c)
	var got []string
	for _, f := range Faults(c.Validate()) {
		got = append(got, label(f))
		if f.Problem == "" || f.Fix == "" {
			t.Errorf("%s: got problem %q and fix %q, want both", label(f), f.Problem, f.Fix)
		}
		if f.Rule == b.rule && f.Setting == b.setting && !strings.Contains(f.Fix, b.fix) {
			t.Errorf("fix: got %q, want it to contain %q", f.Fix, b.fix)
		}
		if f.Rule == b.rule && b.not != "" && strings.Contains(f.Fix, b.not) {
			t.Errorf("fix: got %q, want it without %q", f.Fix, b.not)
		}
	}
	want := append([]string{b.rule + ":" + b.setting}, b.also...)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: %v", got, want, c.Validate())
	}
}

var allBroken = slices.Concat(
	brokenNames, brokenSources, brokenSinks, brokenTimes, brokenOverrides, brokenEnrich, brokenVerify,
)

func TestContradictorySettingsAreRefused(t *testing.T) {
	t.Parallel()
	for i, b := range allBroken {
		name := b.rule
		if b.name != "" {
			name += "/" + b.name
		}
		t.Run(fmt.Sprintf("%s#%d", name, i), b.run)
	}
}

var advice = regexp.MustCompile(`(?:raise|lower) (\S+) to at (?:least|most) ([0-9][0-9a-zA-Z.]*)`)

// The test tries every number that a fault advises. With that number, the rule must hold for the
// setting.
func TestAdviceIsTrue(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, b := range allBroken {
		broken := Default()
		if b.holds != nil {
			b.holds(&broken)
		}
		b.breaks(&broken)
		for _, f := range Faults(broken.Validate()) {
			for _, a := range advice.FindAllStringSubmatch(f.Fix, -1) {
				setting, value := a[1], strings.TrimSuffix(a[2], ".")
				if setting == "it" {
					setting = f.Setting
				}
				tried++
				fixed := with(t, broken, setting, value)
				for _, again := range Faults(fixed.Validate()) {
					if again.Rule == f.Rule && again.Setting == f.Setting {
						t.Errorf("%v: with %s = %s: got %v, want the rule to hold", f, setting, value, again)
					}
				}
			}
		}
	}
	if tried < 30 {
		t.Errorf("got %d pieces of advice with a number, want at least 30", tried)
	}
}

// with returns the settings with one setting replaced. It edits their JSON.
func with(t *testing.T, c Config, setting, value string) Config {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(setting, ".")
	group := root
	for _, part := range parts[:len(parts)-1] {
		next, ok := group[part].(map[string]any)
		if !ok {
			t.Fatalf("%s: got %T at %s, want a group", setting, group[part], part)
		}
		group = next
	}
	last := parts[len(parts)-1]
	group[last] = value
	if n, err := strconv.Atoi(value); err == nil {
		group[last] = n
	}
	if text, err = json.Marshal(root); err != nil {
		t.Fatal(err)
	}
	fixed, err := ParseJSON(text)
	if err != nil {
		t.Fatalf("%s = %s: %v", setting, value, err)
	}
	return fixed
}

func TestEveryRuleIsBroken(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, r := range rules {
		if seen[r.Name] || r.Doc == "" {
			t.Errorf("%s: is there twice or says nothing", r.Name)
		}
		seen[r.Name] = true
		if !slices.ContainsFunc(allBroken, func(b broken) bool { return b.rule == r.Name }) {
			t.Errorf("%s: no test breaks it", r.Name)
		}
	}
}

func TestEveryFaultIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Queues.Visibility = 20 * second
	c.Queues.Retention = 14 * day
	c.Lifecycle.RowRetention = 29 * day
	c.Debounce.MinInterval, c.Index.Timeout = hour, 15*second
	c.Queues.Live.Window = 12 * second
	c.Retry.MaxRefusals = 0
	c.TableOutage = "ajar"
	before := fmt.Sprintf("%+v", c)
	err := c.Validate()
	var got []string
	for _, f := range Faults(err) {
		got = append(got, label(f))
		if !strings.Contains(err.Error(), f.Error()) {
			t.Errorf("%s is not in the error's text", f.Error())
		}
	}
	for _, want := range []string{
		"bounds:retry.maxRefusals", "bounds:tableOutage", "visibility-receive:queues.visibility",
		"recovery-flight:index.timeout", "in-flight:queues.expectedRate", "dead-letter-retention:queues.deadLetterRetention",
		"row-retention:lifecycle.rowRetention",
	} {
		if i := slices.Index(got, want); i < 0 {
			t.Errorf("got %q, want %s among them", got, want)
		}
	}
	if after := fmt.Sprintf("%+v", c); after != before {
		t.Errorf("settings were changed: got %s, want %s", after, before)
	}
}

func TestDeployedSinksOutliveTheProcess(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"bleve", "memory"} {
		c := Default()
		setSink(&c, func(s *Sink) { s.Kind = kind })
		faults := Faults(c.ValidateDeployed())
		if len(faults) != 1 || label(faults[0]) != "deployed-sink:sinks.search.kind" ||
			!strings.Contains(faults[0].Fix, "opensearch") {
			t.Errorf("%s: got %v, want the sink's kind", kind, faults)
		}
	}
}

// Addresses from the documentation do not exist. A stack that was deployed with such an address
// would retry for days.
func TestPlaceholdersAreNotDeployed(t *testing.T) {
	t.Parallel()
	c := Default()
	for address, want := range map[string]int{
		"https://search.example.org": 1, "https://example.com:9200/": 1, "postgres://db.example.net/content": 1,
		"https://search.example.org.shop": 0, "https://search.shop.org/example.org": 0, "https://myexample.org": 0,
	} {
		setSink(&c, func(s *Sink) { s.URL = address })
		if faults := Faults(c.Placeholders()); len(faults) != want ||
			want > 0 && label(faults[0]) != "placeholder:sinks.search.url" {
			t.Errorf("%s: got %v, want %d faults", address, faults, want)
		}
	}
}

func TestSettingsOfNothingAreRefused(t *testing.T) {
	t.Parallel()
	var c Config
	if got := len(Faults(c.Validate())); got < 20 {
		t.Errorf("got %d faults, want most settings", got)
	}
}

func TestFaultReadsAsOneLine(t *testing.T) {
	t.Parallel()
	f := &Fault{
		Rule: "r", Setting: "queues.visibility", Value: "30s", Problem: "is too short", Fix: "raise it",
		Line: 4,
	}
	if got, want := f.Error(), "line 4: queues.visibility (30s): is too short: raise it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.Line, f.Value = 0, ""
	if got, want := fmt.Errorf("load: %w", f).Error(), "load: queues.visibility: is too short: raise it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Faults(fmt.Errorf("load: %w", f)); len(got) != 1 || got[0] != f {
		t.Errorf("wrapped: got %v, want the fault", got)
	}
	if got := Faults(fmt.Errorf("load: %w", errors.Join(f, errors.Join(f, io.EOF), f))); len(got) != 3 {
		t.Errorf("joined and wrapped: got %v, want all three", got)
	}
	if got := Faults(nil); got != nil {
		t.Errorf("nil: got %v, want none", got)
	}
}

func TestFaultsAreShortAndOnOneLine(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Stack = strings.Repeat("x", 10_000)
	c.DefaultSink = "a\nb\x00"
	setSource(&c, func(s *Source) { s.Kind, s.Class = strings.Repeat("\u2028", 10_000), "x" })
	faults := Faults(c.Validate())
	if len(faults) < 4 {
		t.Errorf("got %v, want four faults", faults)
	}
	for _, f := range faults {
		if text := f.Error(); len(text) > 1_500 || strings.ContainsAny(text, "\n\x00\u2028") {
			t.Errorf("got %d bytes: %q", len(text), text)
		}
	}
}

// The fix of a fault never advises something impossible, such as a time-out of 0s.
func TestTheFixOfAShortVisibilityCanBeFollowed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		window, receive time.Duration
		fix             string
	}{
		{42 * time.Second, 6 * time.Second, "lower queues.live.window and queues.bulk.window to at most 4s"},
		{2 * time.Second, 7 * time.Second, "lower receive.timeout to at most 6s"},
		{42 * time.Second, 7 * time.Second, "lower receive.timeout and queues.live.window and queues.bulk.window"},
	} {
		c := Default()
		c.Queues.Live.Window, c.Queues.Bulk.Window, c.Receive.Timeout = test.window, test.window, test.receive
		fixes := map[string]string{}
		for _, f := range Faults(c.Validate()) {
			if strings.Contains(f.Problem, "6 x receive.timeout") {
				fixes[f.Setting] = f.Fix
			}
		}
		if got := fixes["queues.visibility"]; !strings.HasSuffix(got, test.fix) {
			t.Errorf("a window of %s, receive.timeout %s: %q, want it to end with %q", test.window, test.receive, got,
				test.fix)
		}
	}
}
