// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// commands lists the commands of the scenarios.
//
//	wait 5s | clock +5s                      time passes; the clock is set (a clock may go back)
//	settings quiet=5s max-wait=30s ...       the settings of the debounce
//	row                                      shows the row
//	new                                      starts another scenario: no row, +0s
//	admit v2 [sent=+0s] [aged] [class=time]  ADMIT, with the judgement if it is refused, and when the event is due
//	judge v2 [aged]                          the judgement of an event
//	decide v2 [admitted=+0s] [eventual] ...  the decision of index about the newest version it holds
//	claim v2 by=A [again] [cap=...]          CLAIM under the token A
//	commit by=A [delete] [image=claim]       COMMIT, in the form of the present row, or of the row after the claim
//	release by=A [refused]                   RELEASE
//	reject by=A [image=claim]                REJECT
//	park v2, redrive v2                      PARK, REDRIVE
//	reset v2, give v2                        RESET committed to v2; accept v2 again
//	read, collect                            prune reads the row; prune deletes it if it has not changed
//	trip, probe by=A, close by=A, health     the circuit of a sink
//	cut [applied=3], spend [long=1s], pace   the budget of a sink that throttles
//	start by=A, end by=A                     a maintenance run
var commands = map[string]func(*testing.T, *story, *line) string{
	"wait":     wait,
	"clock":    setClock,
	"settings": settings,
	"row":      func(t *testing.T, s *story, _ *line) string { return s.show(s.row(t)) },
	"new":      func(_ *testing.T, s *story, _ *line) string { *s = *newStory(); return "no row\n" },
	"schema":   setSchema,
	"admit":    admit,
	"judge":    judge,
	"decide":   decide,
	"claim":    claim,
	"commit":   commit,
	"release":  release,
	"reject":   reject,
	"park":     park,
	"redrive":  redrive,
	"reset":    reset,
	"give":     give,
	"read":     read,
	"collect":  collect,
	"trip":     trip,
	"probe":    probe,
	"close":    closeCircuit,
	"pause":    pause,
	"resume":   resume,
	"health":   health,
	"widen":    widen,
	"cut":      cut,
	"spend":    spend,
	"pace":     pace,
	"start":    startRun,
	"end":      endRun,
}

func wait(_ *testing.T, s *story, l *line) string {
	s.now += l.span(l.first())
	return clockText(s.micros())
}

func setClock(_ *testing.T, s *story, l *line) string {
	s.now = l.span(l.first())
	return clockText(s.micros())
}

func settings(_ *testing.T, s *story, l *line) string {
	for key, d := range map[string]*int64{
		"quiet": (*int64)(&s.timing.Quiet), "max-wait": (*int64)(&s.timing.MaxWait),
		"cap-grace":    (*int64)(&s.timing.CapGrace),
		"min-interval": (*int64)(&s.timing.MinInterval), "lease": (*int64)(&s.lease),
	} {
		if v, ok := l.arg(key); ok {
			*d = int64(l.span(v))
		}
	}
	s.timing.Leading = l.flag("leading") || s.timing.Leading
	return "ok"
}

// setSchema changes the schema of the row, as a newer build of lull would.
func setSchema(t *testing.T, s *story, l *line) string {
	r := s.row(t)
	if _, err := fmt.Sscan(l.first(), &r.Schema); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.Write(t.Context(), shardtest.Put(r)); err != nil {
		t.Fatal(err)
	}
	return s.show(r)
}

func admit(t *testing.T, s *story, l *line) string {
	class := l.class()
	aged := l.flag("aged")
	a := shard.Arrival{Sent: l.time("sent"), Now: s.micros(), Again: l.flag("again"), NotBefore: l.time("not-before")}
	if a.Sent == 0 {
		a.Sent = a.Now
	}
	k := l.key(class)
	w := shard.Admit(shard.Admission{
		Doc: s.doc, Key: k, Class: class,
		Flight: l.text("flight", "f"+strings.TrimPrefix(version(k), "v")), Now: s.micros(), Aged: aged,
	})
	old, err := s.store.Write(t.Context(), w)
	if refused, ok := shard.AsRefused(err); ok {
		verdict := shard.Judge(refused.Row, k, class, aged)
		text := "ADMIT: refused, " + verdict.String()
		if verdict == shard.Held {
			text += ", due " + clockText(shard.Due(refused.Row, refused.Row, a, s.timing))
		}
		return text + "\n" + s.show(refused.Row)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.before = old
	row := s.row(t)
	return "ADMIT: admitted, due " + clockText(shard.Due(old, row, a, s.timing)) + "\n" + s.show(row)
}

func judge(t *testing.T, s *story, l *line) string {
	class := l.class()
	aged := l.flag("aged")
	return shard.Judge(s.row(t), l.key(class), class, aged).String()
}

func decide(t *testing.T, s *story, l *line) string {
	v := shard.View{
		Now: s.micros(), Consistent: !l.flag("eventual"), Turn: l.number("turn", "0"),
		Backoff: s.micros().Add(l.span(l.text("back-off", "1s"))),
	}
	returns := l.time("returns") // when the message of this version returns from the queue
	h := shard.Hold{Admitted: l.time("admitted")}
	h.Key = l.key(shard.ClassInt)
	r := s.row(t)
	if l.flag("absent") { // a replica that lags may return no row
		r = shard.Row{Doc: s.doc}
	}
	step := shard.Decide(r, h, v, s.timing)
	switch step.Act {
	case shard.ActClaim:
		form := "claim"
		if step.Again {
			form = "claim again"
		}
		return form + ", cap " + clockText(step.Cap)
	case shard.ActWait:
		text := "wait until " + clockText(step.Until) + ": " + step.Why
		if step.Newer != 0 && step.Newer <= returns {
			text += "; may leave"
		}
		return text
	case shard.ActLeave:
		return "leave: " + step.Why
	}
	return map[shard.Act]string{
		shard.ActDone: "done", shard.ActStored: "stored", shard.ActAdmit: "admit", shard.ActReadAgain: "read again",
	}[step.Act]
}

func claim(t *testing.T, s *story, l *line) string {
	by := l.text("by", "")
	b := shard.Bid{
		Doc: s.doc, Token: shard.Token(by), Now: s.micros(), Until: s.micros().Add(s.lease),
		Cap: s.micros().Add(-s.timing.MaxWait - s.timing.CapGrace), MinInterval: s.timing.MinInterval,
		Again: l.flag("again"),
	}
	if c := l.time("cap"); c != 0 {
		b.Cap = c
	}
	repeat := l.flag("repeat") // the SDK sends the same request again
	b.Key = l.key(shard.ClassInt)
	if repeat {
		b = s.bids[by]
	}
	text := s.write(t, shard.Claim(b), "claimed, fence "+clockText(b.Now),
		func(r shard.Row) bool { return shard.OwnClaim(r, b) })
	if r := s.row(t); shard.OwnClaim(r, b) {
		s.bids[by], s.images[by] = b, r
		s.leases[by] = shard.Lease{Doc: s.doc, Key: b.Key, Token: b.Token, At: b.Now}
	}
	return text
}

// held returns the lease of a claimer, and the image that decides the form of a write.
func (s *story) held(t *testing.T, l *line) (shard.Lease, shard.Row) {
	t.Helper()
	by := l.text("by", "")
	lease, ok := s.leases[by]
	if !ok {
		l.d.Fatalf(t, "%q never had a lease", by)
	}
	if l.text("image", "row") == "claim" {
		return lease, s.images[by]
	}
	return lease, s.row(t)
}

func commit(t *testing.T, s *story, l *line) string {
	lease, image := s.held(t, l)
	op := shard.Put
	if l.flag("delete") {
		op = shard.Delete
	}
	w := shard.Commit(lease, op, s.micros(), s.expires(), image)
	return s.write(t, w, "committed", func(r shard.Row) bool { return shard.Ended(r, lease, w) })
}

func release(t *testing.T, s *story, l *line) string {
	lease, _ := s.held(t, l)
	w := shard.Release(lease, l.text("error", "throttled"), l.flag("refused"))
	return s.write(t, w, "released", func(r shard.Row) bool { return shard.Ended(r, lease, w) })
}

func reject(t *testing.T, s *story, l *line) string {
	lease, image := s.held(t, l)
	w := shard.Reject(lease, l.text("error", "mapping"), s.expires(), image)
	return s.write(t, w, "rejected", func(r shard.Row) bool { return shard.Ended(r, lease, w) })
}

func park(t *testing.T, s *story, l *line) string {
	image := s.row(t)
	if l.flag("image-absent") {
		image = shard.Row{Doc: s.doc}
	}
	return s.write(t, shard.Park(s.doc, l.key(shard.ClassInt), s.micros(), s.expires(), image), "parked", nil)
}

func redrive(t *testing.T, s *story, l *line) string {
	k := l.key(shard.ClassInt)
	may := "nobody works on it"
	if !shard.MayRedrive(s.row(t), k, s.micros()) {
		may = "somebody works on it"
	}
	return may + "\n" + s.write(t, shard.Redrive(s.doc, k, s.micros()), "the mark is gone", nil)
}

func reset(t *testing.T, s *story, l *line) string {
	return s.write(t, shard.Reset(s.row(t), l.floor(t), s.micros()), "reset", nil)
}

func give(t *testing.T, s *story, l *line) string {
	return s.write(t, shard.GiveBack(s.row(t), l.floor(t)), "accepted again", nil)
}

// floor returns the floor of a version.
func (l *line) floor(t *testing.T) shard.OrderKey {
	p, err := l.key(shard.ClassInt).Parts()
	if err != nil {
		t.Fatal(err)
	}
	k, err := shard.Floor(p.Epoch, p.Version)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func read(t *testing.T, s *story, _ *line) string {
	s.seen = s.row(t)
	switch collect, stuck := shard.Collectable(s.seen, s.micros(), s.retain, ttlExtra); {
	case stuck:
		return "to be collected, stuck"
	case collect:
		return "to be collected"
	}
	return "kept"
}

func collect(t *testing.T, s *story, _ *line) string {
	return s.write(t, shard.Collect(s.seen, s.micros()), "collected", nil)
}

func trip(t *testing.T, s *story, l *line) string {
	until := s.micros().Add(l.span(l.text("for", "10s")))
	return s.write(t, shard.Trip("search", s.micros(), until, int64(l.number("level", "1"))), "the circuit is open", nil)
}

func probe(t *testing.T, s *story, l *line) string {
	by := l.text("by", "")
	until := s.micros().Add(l.span(l.text("for", "5s")))
	text := s.write(t, shard.Probe("search", s.micros(), until), by+" probes", nil)
	if strings.Contains(text, "probes") {
		s.probes[by] = until
	}
	return text
}

func closeCircuit(t *testing.T, s *story, l *line) string {
	return s.write(t, shard.Close("search", s.probes[l.text("by", "")], s.micros(), shard.RestartPace), "the circuit is closed", nil)
}

func pause(t *testing.T, s *story, l *line) string {
	return s.write(t, shard.Pause("search", s.micros(), l.text("by", ""), ""), "the sink is paused", nil)
}

func resume(t *testing.T, s *story, _ *line) string {
	return s.write(t, shard.Resume("search", s.rowOf(t, shard.HealthRow("search")), s.micros(),
		func(int64) time.Duration { return 10 * time.Second }), "the sink is resumed", nil)
}

func health(t *testing.T, s *story, l *line) string {
	r := s.rowOf(t, shard.HealthRow("search"))
	since := l.span(l.text("since", "60s"))
	circuit, until := shard.Health(r, s.micros())
	text := map[shard.Circuit]string{
		shard.CircuitClosed: "closed: everything goes through", shard.CircuitOpen: "open: nothing is claimed before " +
			clockText(until),
		shard.CircuitProbe: "open, its time is over: one may probe",
	}[circuit]
	if shard.HealthySince(r, s.micros(), since) {
		text += "; well for " + since.String()
	}
	return text
}

func cut(t *testing.T, s *story, l *line) string {
	w, ok := shard.Cut("search", s.rowOf(t, shard.HealthRow("search")), s.micros(), l.number("applied", "0"), 5, 0, 0)
	if !ok {
		return "no CUT: the last one is too young\n"
	}
	return s.write(t, w, "everybody slows down", nil)
}

func spend(t *testing.T, s *story, l *line) string {
	long := l.span(l.text("long", "1s"))
	if r := s.rowOf(t, shard.HealthRow("search")); r.PaidUntil < s.micros() {
		return s.write(t, shard.SpendFirst("search", s.micros(), long), "from now on", nil)
	}
	return s.write(t, shard.Spend("search", s.micros(), long, l.span(l.text("ahead", "4s"))),
		"after what is spoken for", nil)
}

func pace(t *testing.T, s *story, _ *line) string {
	r := s.rowOf(t, shard.HealthRow("search"))
	if p := shard.Pace(r, s.micros()); p > 0 {
		return fmt.Sprintf("%.1f documents a second; spoken for: %s\n", float64(p)/1000, shard.Ahead(r, s.micros()))
	}
	return "no limit\n"
}

func widen(t *testing.T, s *story, l *line) string {
	var b strings.Builder
	for level := range int64(6) {
		fmt.Fprintf(&b, "level %d: quiet %s\n", level, shard.Widen(s.timing, level).Quiet)
	}
	return b.String()
}

func startRun(t *testing.T, s *story, l *line) string {
	w := shard.StartRun("prune", shard.Token(l.text("by", "")), s.micros(),
		s.micros().Add(l.span(l.text("for", "60s"))), l.span(l.text("interval", "300s")))
	return s.write(t, w, "runs", nil)
}

func endRun(t *testing.T, s *story, l *line) string {
	return s.write(t, shard.EndRun("prune", shard.Token(l.text("by", "")), l.text("cursor", "")), "ended", nil)
}

var _ shard.Store = (*memory.Shards)(nil)
