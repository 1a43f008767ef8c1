// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
)

// again marks a dead letter as sent again a moment ago.
func (g *ground) again(id string) string {
	g.Helper()
	usecasetest.OK(g, g.rig.Letters.MarkRedriven(g.Context(), id, time.Now(), false))
	return id
}

// A redriven dead letter says what became of its version, although prune has not removed it. If it
// was parked without a version, its message is decoded by the present settings.
func TestADeadLetterThatWasSentAgainSaysWhatBecameOfIt(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		keyless := func(body string) string {
			l := deadletter.New(queue.Message{ID: "m-" + body, Body: body, Sent: time.Now()}, deadletter.Contract,
				"the settings do not name its collection", "", "", 0, time.Now())
			l.Sink, l.Lane = "search", string(flight.Live)
			usecasetest.Must(g.rig.Letters.Park(g.Context(), l))(g)
			return g.again(l.ID)
		}
		redrive := func(body string) string { return g.again(g.die(body, deadletter.Cancelled)) }
		g.commit(g.hold("f-low", put("low", 101)), `{}`)
		parked := g.die(put("parked", 3), deadletter.Cancelled)
		ids := map[string]string{
			"waits":        redrive(put("waits", 3)),
			"no version":   keyless(put("free", 3)),
			"undecodable":  keyless("not JSON"),
			"stale":        keyless(put("low", 90)),
			"still parked": parked,
		}
		want := map[string]operate.Became{"stale": operate.BecameStale}
		check := func() {
			t.Helper()
			for name, id := range ids {
				l := usecasetest.Must(api.Letter(t.Context(), id))(t)
				if l.Became != want[name] || (l.BecameWhy == "") != (want[name] == "") {
					t.Errorf("%s: became %q because %q, want %q", name, l.Became, l.BecameWhy, want[name])
				}
				if name == "stale" && !strings.Contains(l.BecameWhy, "version 90 is not written, because version 101") {
					t.Errorf("the reason is %q", l.BecameWhy)
				}
			}
		}
		check()
		g.commit(g.hold("f-free", put("free", 3)), `{}`)
		ids["dead again"] = keyless(put("bad", 3))
		g.die(put("bad", 3), deadletter.RejectedBySink)
		want["no version"], want["dead again"] = operate.BecameCommitted, operate.BecameDead
		check()
	})
}
