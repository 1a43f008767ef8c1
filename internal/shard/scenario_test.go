// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/shard"
)

// TestScenarios runs the files of testdata/scenarios. There is one file for each rule, named after
// the rule. `go test ./internal/shard -run Scenarios -rewrite` writes the present results into the
// files. Review the difference like a change of the specification.
func TestScenarios(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := newStory()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			tell, ok := commands[d.Cmd]
			if !ok {
				d.Fatalf(t, "no such command: %s", d.Cmd)
			}
			l := &line{t: t, d: d, left: d.CmdArgs}
			text := tell(t, s, l)
			l.done()
			return strings.TrimSuffix(text, "\n") + "\n"
		})
	})
}

// noon is the time +0s of every scenario.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// story is the state of a scenario: one document's row, and the flights and operators that use the
// row.
type story struct {
	store  *memory.Shards
	doc    shard.DocID
	now    time.Duration // since noon
	timing shard.Timing
	lease  time.Duration
	retain time.Duration
	before shard.Row
	seen   shard.Row // the row that prune read
	leases map[string]shard.Lease
	bids   map[string]shard.Bid
	images map[string]shard.Row // the row of each claimer after its claim
	probes map[string]shard.Micros
}

func newStory() *story {
	return &story{
		store: memory.NewShards(), doc: "pages#a", lease: 13 * time.Second, retain: 30 * 24 * time.Hour,
		timing: shard.Timing{
			Quiet: 5 * time.Second, MaxWait: 30 * time.Second, CapGrace: 10 * time.Second,
			MinInterval: time.Second, Waits: 3,
		},
		leases: map[string]shard.Lease{}, bids: map[string]shard.Bid{}, images: map[string]shard.Row{},
		probes: map[string]shard.Micros{},
	}
}

const ttlExtra = 7 * 24 * time.Hour

func at(d time.Duration) shard.Micros { return shard.MicrosOf(noon.Add(d)) }

func (s *story) micros() shard.Micros { return at(s.now) }

// expires returns the expires_at, in seconds, that a write at now gives to a row without a pending
// version.
func (s *story) expires() int64 { return noon.Add(s.now + s.retain + ttlExtra).Unix() }

func (s *story) row(t *testing.T) shard.Row { return s.rowOf(t, s.doc) }

func (s *story) rowOf(t *testing.T, doc shard.DocID) shard.Row {
	t.Helper()
	rows, err := s.store.Read(t.Context(), []shard.DocID{doc}, shard.Consistent)
	if err != nil {
		t.Fatal(err)
	}
	return rows[0]
}

// write executes a write and prints the result and the row. recognised reports whether a refusal
// shows that the same write had already been applied.
func (s *story) write(t *testing.T, w shard.Write, done string, recognised func(shard.Row) bool) string {
	t.Helper()
	_, err := s.store.Write(t.Context(), w)
	if refused, ok := shard.AsRefused(err); ok {
		done = "refused"
		if recognised != nil && recognised(refused.Row) {
			done = "refused, but it was ours: the same write was applied before"
		}
	} else if err != nil {
		t.Fatal(err)
	}
	return w.Transition.String() + ": " + done + "\n" + s.show(s.rowOf(t, w.Doc))
}

// line has the arguments of a command. A command removes the arguments that it knows. Arguments
// that are left are an error.
type line struct {
	t    *testing.T
	d    *datadriven.TestData
	left []datadriven.CmdArg
}

func (l *line) done() {
	if len(l.left) > 0 {
		l.d.Fatalf(l.t, "%s does not know %v", l.d.Cmd, l.left)
	}
}

// arg removes and returns a named argument.
func (l *line) arg(key string) (value string, ok bool) {
	for i, a := range l.left {
		if a.Key == key && len(a.Vals) <= 1 {
			l.left = append(l.left[:i:i], l.left[i+1:]...)
			return strings.Join(a.Vals, ""), true
		}
	}
	return "", false
}

func (l *line) flag(key string) bool {
	_, ok := l.arg(key)
	return ok
}

// text returns a named argument, or a default.
func (l *line) text(key, otherwise string) string {
	if v, ok := l.arg(key); ok {
		return v
	}
	return otherwise
}

// number returns a named argument as a number.
func (l *line) number(key, otherwise string) int {
	n, err := strconv.Atoi(l.text(key, otherwise))
	if err != nil {
		l.d.Fatalf(l.t, "no number: %v", err)
	}
	return n
}

// first removes and returns the first argument without a value.
func (l *line) first() string {
	for i, a := range l.left {
		if len(a.Vals) == 0 {
			l.left = append(l.left[:i:i], l.left[i+1:]...)
			return a.Key
		}
	}
	l.d.Fatalf(l.t, "%s needs an argument", l.d.Cmd)
	return ""
}

// span parses a duration such as 5s, +5s, -1ms or 31d.
func (l *line) span(text string) time.Duration {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(strings.TrimPrefix(days, "+"))
		if err != nil {
			l.d.Fatalf(l.t, "no time: %s", text)
		}
		return time.Duration(n) * 24 * time.Hour
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		l.d.Fatalf(l.t, "no time: %s", text)
	}
	return d
}

// time returns a named argument that counts from noon, 0 for none.
func (l *line) time(key string) shard.Micros {
	v, ok := l.arg(key)
	if !ok {
		return 0
	}
	return at(l.span(v))
}

func (l *line) class() shard.Class {
	c, err := shard.ParseClass(l.text("class", "int"))
	if err != nil {
		l.d.Fatalf(l.t, "%v", err)
	}
	return c
}

// runs names the resync runs of a scenario.
var runs = map[string]shard.Run{"first": {1}, "second": {2}}

// key parses a version such as v7. More parts of the order key may be given: e2.v7 (epoch),
// v7.first (resync run), v7@+3s (event time), v7/b (payload).
func (l *line) key(class shard.Class) shard.OrderKey {
	text := l.first()
	bad := func(err error) shard.OrderKey {
		l.d.Fatalf(l.t, "no version %q: %v", text, err)
		return ""
	}
	var p shard.Parts
	rest, payload, _ := strings.Cut(text, "/")
	copy(p.Digest[:], payload)
	rest, sent, timed := strings.Cut(rest, "@")
	if timed {
		p.Time = noon.Add(l.span(sent))
	}
	if strings.HasPrefix(rest, "e") {
		var epoch string
		epoch, rest, _ = strings.Cut(rest, ".")
		n, err := strconv.ParseUint(epoch[1:], 10, 32)
		if err != nil {
			return bad(err)
		}
		p.Epoch = uint32(n)
	}
	version, run, resync := strings.Cut(rest, ".")
	if resync {
		p.Run = runs[run]
		if p.Run == (shard.Run{}) {
			return bad(fmt.Errorf("no such run"))
		}
	}
	number := strings.TrimPrefix(version, "v")
	if class == shard.ClassTime {
		number = noon.Format(time.RFC3339)
	}
	var err error
	if p.Version, err = shard.ParseVersion(class, number); err != nil {
		return bad(err)
	}
	k, err := shard.NewOrderKey(p)
	if err != nil {
		return bad(err)
	}
	return k
}

// version prints a key in the form that [line.key] parses.
func version(k shard.OrderKey) string {
	if k == shard.Lowest {
		return "nothing"
	}
	p, err := k.Parts()
	if err != nil {
		return k.String()
	}
	var b strings.Builder
	if p.Epoch != 0 {
		fmt.Fprintf(&b, "e%d.", p.Epoch)
	}
	if v := p.Version.String(); p.Version.Class() == shard.ClassInt {
		b.WriteString("v" + v[3:])
	} else {
		b.WriteString(v)
	}
	for name, run := range runs {
		if run == p.Run {
			b.WriteString("." + name)
		}
	}
	if !p.Time.IsZero() {
		b.WriteString("@" + clockText(shard.MicrosOf(p.Time)))
	}
	if p.Digest != (shard.Digest{}) {
		b.WriteString("/" + strings.TrimRight(string(p.Digest[:]), "\x00"))
	}
	return b.String()
}

// clockText prints a time as scenarios do: +5s, +31d.
func clockText(m shard.Micros) string {
	d := m.Sub(at(0))
	if day := 24 * time.Hour; d >= 2*day {
		if d%day == 0 {
			return fmt.Sprintf("+%dd", d/day)
		}
		return fmt.Sprintf("+%dd%s", d/day, d%day)
	}
	if d < 0 {
		return d.String()
	}
	return "+" + d.String()
}

func versions(set shard.KeySet) string {
	var out []string
	for _, k := range set.Keys() {
		out = append(out, version(k))
	}
	return strings.Join(out, " ")
}

// show prints a row as scenarios do.
func (s *story) show(r shard.Row) string {
	if !r.Exists() {
		return "no row\n"
	}
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	moment := func(m shard.Micros) string {
		if m == 0 {
			return ""
		}
		return clockText(m)
	}
	var class, committed, lease string
	if r.VersionClass != 0 && r.VersionClass != shard.ClassInt {
		class = r.VersionClass.String()
	}
	if r.Committed != "" {
		committed = fmt.Sprintf("%s (%s)", version(r.Committed), r.CommittedOp)
	}
	switch {
	case r.Owner != "":
		lease = fmt.Sprintf("%s until %s", r.Owner, clockText(r.LeaseUntil))
	case r.LeaseUntil != 0:
		lease = "nobody's since " + clockText(r.LeaseUntil)
	}
	var b strings.Builder
	for _, line := range []struct{ name, text string }{
		{"schema", number(r.Schema)},
		{"class", class},
		{"pending", version(r.Pending)},
		{"burst", moment(r.BurstStart)},
		{"flight", r.Flight},
		{"committed", committed},
		{"last write", moment(r.LastWrite)},
		{"claimed", version(r.Claimed)},
		{"claimed was", version(r.ClaimedWas)},
		{"lease", lease},
		{"attempts", number(r.Attempts)},
		{"refusals", number(r.Refusals)},
		{"last error", r.LastError},
		{"dead", version(r.Dead)},
		{"took back", versions(r.TakenBack)},
		{"open", moment(r.OpenUntil)},
		{"level", number(r.Level)},
		{"probe", moment(r.ProbeUntil)},
		{"rate", number(r.Rate)},
		{"rate top", number(r.RateTop)},
		{"rate at", moment(r.RateAt)},
		{"paid until", moment(r.PaidUntil)},
		{"paid", number(r.Paid)},
		{"sent until", moment(r.SentUntil)},
		{"paused", moment(r.PausedAt)},
		{"paused by", r.PausedBy},
		{"ran", moment(r.RanAt)},
		{"cursor", r.Cursor},
		{"expires", moment(shard.Micros(r.ExpiresAt * 1_000_000))},
	} {
		if line.text != "" {
			fmt.Fprintf(&b, "  %-11s %s\n", line.name, line.text)
		}
	}
	return b.String()
}
