// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/simulation/price"
)

var (
	settingRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([0-9.]+)(d|h|m|s|ms)?[ ,|]")
	// quoted matches a setting with its default after it, such as `retry.deadDeadline` (3 days).
	quoted = regexp.MustCompile("`([a-z][A-Za-z]*(?:\\.[A-Za-z<>]+)+)`(?:,| is)? \\(?([0-9.]+) ?" +
		"(days?|d|hours?|h|minutes?|m|seconds?|s|ms)\\b")
	ownName = regexp.MustCompile(`^(sources|collections|sinks)\.(?:<name>|NAME|X)\.`)
)

// in returns how long n units are.
func in(t *testing.T, n, unit string) time.Duration {
	t.Helper()
	f, err := strconv.ParseFloat(n, 64)
	if err != nil {
		t.Fatal(err)
	}
	units := map[string]time.Duration{
		"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second, "ms": time.Millisecond,
	}
	if unit != "ms" {
		unit = unit[:1]
	}
	return time.Duration(f * float64(units[unit]))
}

// current returns the pages that describe today's lull. A decision record describes its own day.
func current(t *testing.T) []Page {
	t.Helper()
	all, _ := pages(t)
	return slices.DeleteFunc(all, func(p Page) bool { return strings.HasPrefix(p.Name, "docs/adr/") })
}

// TestQuotedDefaultsAreTheDefaults compares each default that a page quotes after the name of its
// setting with docs/settings.md, which the code writes.
func TestQuotedDefaultsAreTheDefaults(t *testing.T) {
	t.Parallel()
	defaults := map[string]time.Duration{}
	for _, m := range settingRow.FindAllStringSubmatch(read(t, "docs/settings.md"), -1) {
		if m[3] != "" {
			defaults[ownName.ReplaceAllString(m[1], "")] = in(t, m[2], m[3])
		}
	}
	found := 0
	for _, p := range current(t) {
		text := strings.Join(strings.Fields(read(t, p.Name)), " ")
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			want, known := defaults[ownName.ReplaceAllString(m[1], "")]
			if !known {
				continue // a setting without a plain default, or a text that only looks like a setting
			}
			found++
			if got := in(t, m[2], m[3]); got != want {
				t.Errorf("%s: %s: the default is %s", p.Name, m[0], want)
			}
		}
	}
	if found < 10 {
		t.Errorf("compared %d defaults, want at least 10", found)
	}
}

// TestFiguresHaveOneHome compares figures that several pages quote with the place that they come
// from: the settings, the prices, or the page that a simulation writes.
func TestFiguresHaveOneHome(t *testing.T) {
	t.Parallel()
	c := config.Default()
	days := func(d time.Duration) string { return fmt.Sprint(int(d / (24 * time.Hour))) }
	idle := regexp.MustCompile(`a month in which nothing happens, whole, \$ \|[^|]*\| ([0-9.]+) \|`)
	m := idle.FindStringSubmatch(read(t, "docs/cost.md"))
	if m == nil {
		t.Fatal("docs/cost.md does not say what a month costs in which nothing happens")
	}
	month, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	const rows, rowBytes = 1e6, 600 // a row as docs/cost.md prices it
	walk := rows*rowBytes/4096/2 + rows*price.ReadUnits(0, false)
	dollars := func(units float64) string { return fmt.Sprintf("%.2f", units*price.USEast1.ReadUnits/1e6) }
	for _, f := range []struct {
		what, quote, want string
		atLeast           int // how many pages quote it
	}{
		{"an idle stack", `about \$(\S+) a month`, fmt.Sprint(math.Round(month)), 3},
		{
			"fresh within", `(?:Fresh within|window \+ 1 s. is) (\S+) s`,
			fmt.Sprint((c.Debounce.Quiet + c.Queues.Live.Window + time.Second).Seconds()), 2,
		},
		{
			"a put after its delete", `refuses (?:the change|that) for (\S+) days`,
			days(c.Lifecycle.RowRetention), 2,
		},
		{"the dead deadline in hours", `.retry.deadDeadline. \((\S+) h by default\)`, fmt.Sprint(c.Retry.DeadDeadline.Hours()), 1},
		{"rows that a check reads", `about \$(\S+) for a million rows`, dollars(walk), 1},
		{"the same with an export", `\$(\S+) for a million rows with an export`, dollars(walk + rows*price.ReadUnits(0, true)), 1},
	} {
		quote, n := regexp.MustCompile(f.quote), 0
		for _, p := range current(t) {
			text := strings.Join(strings.Fields(read(t, p.Name)), " ")
			for _, m := range quote.FindAllStringSubmatch(text, -1) {
				if n++; m[1] != f.want {
					t.Errorf("%s: %s: got %q, want %s", p.Name, f.what, m[0], f.want)
				}
			}
		}
		if n < f.atLeast {
			t.Errorf("%s: %d pages quote it, want at least %d: correct the pattern", f.what, n, f.atLeast)
		}
	}
}
