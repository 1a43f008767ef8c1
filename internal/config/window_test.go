// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config/tree"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

func said(name, value string) tree.Node {
	return within(name, tree.Node{Kind: tree.String, Text: value})
}

// One line of settings is enough for a long window. The max wait and the expected rate of a queue
// follow from that line.
func TestOneLineIsEnoughForALongWindow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		setting, value string
		maxWait        time.Duration // of the collection news
		rate           int
	}{
		{"debounce.quiet", "5s", 30 * time.Second, 500},
		{"debounce.quiet", "7s", 30 * time.Second, 500},
		{"debounce.quiet", "10s", 40 * time.Second, 500},
		{"debounce.quiet", "1m", 4 * time.Minute, 312},
		{"debounce.quiet", "5m", 20 * time.Minute, 65},
		{"debounce.quiet", "15m", time.Hour, 22},
		{"collections.news.quiet", "5m", 20 * time.Minute, 65},
		{"collections.news.quiet", "6s", 30 * time.Second, 500},
		{"debounce.maxWait", "1h", time.Hour, 500}, // with short windows, superseded messages leave their flights
		{"debounce.minInterval", "1h", 30 * time.Second, 22},
		{"collections.news.minInterval", "10m", 30 * time.Second, 129},
	} {
		t.Run(c.setting+" "+c.value, func(t *testing.T) {
			t.Parallel()
			got, err := judged(said(c.setting, c.value))
			if err != nil {
				t.Fatal(err)
			}
			if d := got.For("news"); d.MaxWait != c.maxWait || got.Queues.ExpectedRate != c.rate {
				t.Errorf("max wait %s and %d messages a second, want %s and %d", d.MaxWait, got.Queues.ExpectedRate,
					c.maxWait, c.rate)
			}
		})
	}
}

// A setting that the file sets is never replaced by a derived value. If it contradicts another
// setting, that is a fault.
func TestWhatIsSaidIsNotDerived(t *testing.T) {
	t.Parallel()
	file := said("debounce.maxWait", "20m")
	file.Fields = append(file.Fields, said("collections.news.quiet", "10s").Fields...)
	c, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.For("news").MaxWait; got != 20*time.Minute {
		t.Errorf("the collection's max wait: got %s, want the general max wait of 20m", got)
	}
	file = said("debounce.maxWait", "1m")
	quiet := said("debounce.quiet", "5m").Fields[0].Value.Fields
	file.Fields[0].Value.Fields = append(file.Fields[0].Value.Fields, quiet...)
	_, err = judged(file)
	if got := Faults(err); len(got) == 0 || got[0].Rule != "quiet-max-wait" {
		t.Errorf("got %v, want a fault: quiet is longer than the max wait", err)
	}
}

// A quiet window beyond its bounds is one fault. The settings that follow from the window cause no
// further fault.
func TestAWindowThatIsTooLongIsOneFault(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"debounce.quiet", "collections.news.quiet"} {
		_, err := judged(said(setting, "20m"))
		if got := Faults(err); len(got) != 1 || got[0].Setting != setting {
			t.Errorf("%s: got %v, want one fault", setting, err)
		}
	}
}

// SetQuiet serves a flag that changes the quiet window of complete settings.
func TestSetQuietDerivesAgain(t *testing.T) {
	t.Parallel()
	c := Default()
	c.SetQuiet(5 * time.Minute)
	if err := c.Validate(); err != nil || c.Debounce.MaxWait != 20*time.Minute || c.Queues.ExpectedRate != 65 {
		t.Errorf("got %+v, %d a second: %v", c.Debounce, c.Queues.ExpectedRate, err)
	}
	c.SetQuiet(5 * time.Second)
	if want := Default(); fmt.Sprint(c.Debounce, c.Queues) != fmt.Sprint(want.Debounce, want.Queues) {
		t.Errorf("got %+v %+v, want the defaults again", c.Debounce, c.Queues)
	}
	c.Debounce.MaxWait = time.Minute
	if c.SetQuiet(5 * time.Minute); c.Debounce.MaxWait != time.Minute || c.Validate() == nil {
		t.Errorf("max wait %s, want the 1m that was set, and a fault", c.Debounce.MaxWait)
	}
}

// accepts reports whether lull accepts this value of a setting if all other settings have their
// defaults.
func accepts(s described, n int64) bool {
	f := file(s, number(s.Setting, n))
	beside := func(entry *tree.Node, others ...tree.Node) {
		for _, other := range others {
			entry.Fields = append(entry.Fields, other.Fields...)
		}
	}
	option, ofSink := strings.CutPrefix(s.generic, "sinks.<name>:")
	switch {
	case ofSink:
		kind, _, _ := strings.Cut(option, ".")
		k, _ := sink.Lookup(kind)
		beside(&f.Fields[0].Value.Fields[0].Value, said("url", k.Example()), said("index", "{collection}"))
	case strings.HasPrefix(s.generic, "sinks.<name>."):
		beside(&f.Fields[0].Value.Fields[0].Value, said("kind", "memory"))
	case strings.HasPrefix(s.generic, "sources.<name>."):
		beside(&f.Fields[0].Value.Fields[0].Value, said("kind", "native"))
	case strings.HasPrefix(s.generic, "collections.<name>.enrich."):
		beside(&f.Fields[0].Value.Fields[0].Value.Fields[0].Value,
			said("kind", "http"), said("url", "https://enrich.example.org/"),
			within("inputs", tree.Node{Kind: tree.List, Items: []tree.Node{{Kind: tree.String, Text: "/title"}}}))
	}
	if strings.HasPrefix(s.generic, "collections.<name>.verify.") {
		f.Fields = append(f.Fields, within("sources", within("cms", tree.Node{
			Kind: tree.Map, Fields: append(said("kind", "native").Fields, within("fetch", tree.Node{
				Kind:   tree.Map,
				Fields: append(said("url", "https://cms.example.org/{id}").Fields, said("version", "/v").Fields...),
			}).Fields...),
		})).Fields...)
	}
	_, err := judged(f)
	return err == nil
}

// steps is the difference between two values of a setting that the test tries.
func (d described) steps() int64 {
	switch {
	case d.Step > 0:
		return int64(d.Step)
	case d.Unit == setting.UnitDuration && d.Max >= int64(time.Minute):
		return int64(time.Second)
	case d.Unit == setting.UnitDuration:
		return int64(time.Millisecond)
	}
	return 1
}

// accepted returns the range of accepted values that contains the value around, within the
// setting's bounds. The accepted values have no gaps, so a binary search finds the ends of the
// range.
func (d described) accepted(around int64) (low, high int64) {
	step := d.steps()
	end := func(to int64) int64 {
		if accepts(d, to) {
			return to
		}
		good, bad := int64(0), (to-around)/step // both count steps from the value around
		for good-bad > 1 || bad-good > 1 {
			if middle := (good + bad) / 2; accepts(d, around+middle*step) {
				good = middle
			} else {
				bad = middle
			}
		}
		return around + good*step
	}
	return end(d.Min), end(d.Max)
}

// usual returns a number that is always accepted: the default of the setting. For an override, it
// is the default of the overridden setting. It returns false for a setting that is not a number.
func (d described) usual() (int64, bool) {
	if !d.IsNumber() {
		return 0, false
	}
	if strings.Contains(d.Name, ".fetch.") || strings.Contains(d.Name, ".vector.") {
		return 0, false // the setting is valid only together with other settings
	}
	switch d.Name { // for these settings, the default is 0 and stands for another number
	case "queues.expectedRate":
		return usualRate, true
	case "flight.ambiguousRetry":
		return int64(13 * time.Second), true
	}
	for _, try := range []int64{d.Min, d.Max} {
		if accepts(d, try) {
			return try, true
		}
	}
	name := d.generic
	if override, ok := strings.CutPrefix(name, "collections.<name>."); ok && !strings.Contains(override, ".") {
		name = "debounce." + override
	}
	v := plainDefaults()[name]
	return v.Int(), true
}

// alone returns a text that says which values are accepted if all other settings have their
// defaults. The text is empty if all values within the bounds are accepted.
func (d described) alone() string {
	usual, ok := d.usual()
	if !ok {
		return ""
	}
	low, high := d.accepted(usual)
	if low == d.Min && high == d.Max {
		return ""
	}
	return fmt.Sprintf("; alone %s to %s", d.Format(low), d.Format(high))
}

// lull accepts both ends of each range in settings.md, and refuses the next value beyond an end.
func TestSettingsDocumentSaysWhatIsAccepted(t *testing.T) {
	t.Parallel()
	narrower := 0
	for _, d := range settings() {
		usual, ok := d.usual()
		if !ok {
			continue
		}
		low, high := d.accepted(usual)
		step := d.steps()
		for _, end := range []struct{ at, beyond, most int64 }{{low, low - step, d.Min}, {high, high + step, d.Max}} {
			if !accepts(d, end.at) {
				t.Errorf("%s: %s is not accepted", d.Name, d.Format(end.at))
			}
			if end.at != end.most {
				if narrower++; accepts(d, end.beyond) {
					t.Errorf("%s: %s is accepted, beyond the end %s", d.Name, d.Format(end.beyond), d.Format(end.at))
				}
			}
		}
	}
	if narrower < 10 {
		t.Errorf("only %d ranges are narrower than the bounds, want at least 10", narrower)
	}
}
