// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/operator/bridge"
)

// An upstream that has delivered all messages, or can never deliver again, ends the bridge. The
// bridge does not connect again.
func TestAnUpstreamEndsTheBridge(t *testing.T) {
	t.Parallel()
	lost := errors.New("the slot is lost")
	for name, want := range map[string]error{"finished": nil, "lost": lost} {
		for _, opens := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					g := newGround(t, bodies(3)...)
					end := &bridge.Ended{Err: want}
					if !opens {
						g.refuse = []error{errors.New("refused"), end}
					}
					b, got := bridge.New(g.options()), make(chan error, 1)
					go func() { got <- b.Run(t.Context()) }()
					if opens {
						time.Sleep(time.Minute)
						synctest.Wait()
						g.session.end(end)
					}
					select {
					case err := <-got:
						if !errors.Is(err, want) {
							t.Errorf("got %v, want %v", err, want)
						}
					case <-time.After(time.Minute):
						t.Error("the bridge still runs")
					}
					if connections := b.Health().Counts.Connections; opens != (connections == 1) {
						t.Errorf("%d connections", connections)
					}
				})
			})
		}
	}
}

type reporting struct{ *ground }

func (reporting) Report() (facts []slog.Attr, problem string) {
	return []slog.Attr{slog.Int64("lag", 42)}, "the slot is nearly lost"
}

// The facts of an upstream are in the health and in the line of each minute.
func TestTheHealthHasTheFactsOfTheUpstream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t)
		o := g.options()
		o.Broker = reporting{g}
		b := bridge.New(o)
		stop := run(t, b)
		time.Sleep(61 * time.Second)
		if h := b.Health(); h.Healthy || h.Problem != "the slot is nearly lost" || h.Upstream["lag"] != int64(42) {
			t.Errorf("got %+v", h)
		}
		stop()
		if !strings.Contains(g.log.String(), " lag=42") {
			t.Errorf("the log has no facts:\n%s", g.log.String())
		}
	})
}
