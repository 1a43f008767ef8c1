package ground

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// told is what the functions log of one burst: two messages, a turn and a write. Times are seconds.
type told struct {
	sent, received [2]float64
	due            float64
	asked, woken   float64
	earlier        float64 // when an earlier turn of the flight began, 0 for none
	before         float64 // when it ended
	claims         []float64
}

// fresh is a burst as it should be, at a load that the host keeps up with.
var fresh = told{
	sent: [2]float64{0, 1}, received: [2]float64{1.5, 1.5}, due: 5, asked: 6, woken: 6.3, claims: []float64{6.5},
}

func (d told) lines(doc string) []string {
	at := func(seconds float64) string {
		since := time.Duration(seconds * float64(time.Second))
		return time.Unix(1_777_888_800, 0).UTC().Add(since).Format(time.RFC3339Nano)
	}
	var all []string
	line := func(seconds float64, step, more string) {
		all = append(all, fmt.Sprintf(`{"timestamp":%q,"msg":%q,"requestId":%q,%s}`, at(seconds), step, "of-"+doc,
			more))
	}
	for i, received := range d.received {
		line(received, "held", fmt.Sprintf(`"doc":%q,"version":"v%d","message":"m%d","age_ms":%d,"until":%q`, doc, i, i,
			int((received-d.sent[i])*1000), at(d.due)))
	}
	if d.earlier != 0 {
		request := "earlier-" + doc
		all = append(all, fmt.Sprintf(`{"timestamp":%q,"msg":"turn","requestId":%q,"flight":%q}`, at(d.earlier), request,
			doc), fmt.Sprintf(`{"timestamp":%q,"msg":"deleted","requestId":%q}`, at(d.before), request))
	}
	line(d.woken, "turn", fmt.Sprintf(`"flight":%q,"wake":%q`, doc, at(d.asked)))
	for _, claimed := range d.claims {
		line(claimed, "claimed", fmt.Sprintf(`"doc":%q,"version":"v1","message":"m1","age_ms":%d`, doc,
			int((claimed-d.sent[1])*1000)))
		line(claimed, "committed", fmt.Sprintf(`"doc":%q,"version":"v1"`, doc))
	}
	return all
}

// What the end-to-end tests say of freshness and of writes can be wrong.
func TestBurstsAreJudged(t *testing.T) {
	t.Parallel()
	change := func(how func(*told)) told { d := fresh; how(&d); return d }
	for name, tt := range map[string]struct {
		one  told // of ten, the others are as they should be
		many int  // how many are like it, 0 for one
		says string
	}{
		"as it should be": {one: fresh},
		"woken late":      {one: change(func(d *told) { d.woken, d.claims = 20, []float64{20.5} })},
		"woken early":     {one: change(func(d *told) { d.woken, d.claims = 4.9, []float64{6.5} })},
		"claimed late":    {one: change(func(d *told) { d.claims = []float64{8.4} })},
		"not claimed in the first turn": {
			one:  change(func(d *told) { d.earlier, d.before = 5.5, 5.9 }),
			says: "1 turns of its flight began when it was due, and did not claim it",
		},
		"asked to wake late": {one: change(func(d *told) { d.asked = 7.1 }), says: "was asked to wake its flight"},
		"waited for a turn": {one: change(func(d *told) {
			d.earlier, d.before, d.asked, d.woken, d.claims = 4, 8, 9, 9.1, []float64{9.3}
		})},
		"written twice": {
			one: change(func(d *told) { d.claims = []float64{6.4, 6.5} }), says: "11 writes for 10 bursts",
		},
		"received late": {one: change(func(d *told) {
			d.received, d.claims = [2]float64{1.5, 4.1}, []float64{6.4, 6.5}
		})},
		"sent slowly": {one: change(func(d *told) { d.sent[0], d.claims = -2.1, []float64{6.4, 6.5} })},
		"received too late": {
			one: change(func(d *told) { d.received[0] = 3.1 }), many: 6, says: "kept up with 4 of 10",
		},
	} {
		var log decisions
		for i := range 10 {
			of := fresh
			if i < max(tt.many, 1) {
				of = tt.one
			}
			for _, line := range of.lines(fmt.Sprintf("c#%d", i)) {
				log.add(line)
			}
		}
		log.add(`{"_aws":{},"Committed":1}`)
		log.add("START RequestId: 1")
		_, faults := judge(log.bursts("c"), time.Second, 3*time.Second)
		if got := strings.Join(faults, "\n"); (got == "") != (tt.says == "") || !strings.Contains(got, tt.says) {
			t.Errorf("%s: got %q, want %q", name, got, tt.says)
		}
	}
}
