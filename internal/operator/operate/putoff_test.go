// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

const undefined = "configuration: undefined_column: field version, in collection content"

// was is a health row of a sink that was away for many minutes, a minute ago.
func was() shard.Row {
	return shard.Row{
		Doc: shard.HealthRow("search"), Level: 90, LastWrite: micros().Add(-time.Minute), LastError: undefined,
	}
}

// queued has so many messages in the queue of the sink, invisible.
func (g *ground) queued(n int) {
	g.Counts = func(context.Context) ([]operate.QueueStatus, error) {
		return []operate.QueueStatus{{Queue: "search-live", Sink: "search", InFlight: n}}, nil
	}
}

func TestStatusSaysWhyASinkWasAwayAndWhatItPutOff(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.hold("f", put("a", 7))
		g.queued(30)
		look := func(row shard.Row) operate.SinkStatus {
			t.Helper()
			g.rig.Write(shardtest.Put(row))
			s, err := api.Status(t.Context())
			if err != nil || len(s.Sinks) != 2 || s.Sinks[0].Cause != "" || s.Sinks[0].PutOff != 0 {
				t.Fatalf("got %+v, %v", s, err)
			}
			return s.Sinks[1]
		}
		away, long := was(), was()
		away.OpenUntil = micros().Add(time.Minute)
		if k := look(away); k.Cause != undefined || k.PutOff != 29 || !k.PutOffUntil.IsZero() {
			t.Errorf("away: %+v, want the cause, and 29 put off: one is in a flight", k)
		}
		if k := look(was()); k.Cause != undefined || k.PutOff != 29 || time.Until(k.PutOffUntil) < 13*time.Minute ||
			time.Until(k.PutOffUntil) > 14*time.Minute {
			t.Errorf("back for a minute: %+v, want the cause, and until when the messages come", k)
		}
		long.LastWrite = micros().Add(-16 * time.Minute)
		if k := look(long); k.Cause != "" || k.PutOff != 0 || !k.PutOffUntil.IsZero() {
			t.Errorf("well for 16 minutes: %+v, want nothing of it", k)
		}
		short := was()
		short.Level = 1
		if k := look(short); k.PutOff != 0 || !k.PutOffUntil.IsZero() {
			t.Errorf("away for a second: %+v, want nothing put off", k)
		}
	})
}

func TestExplainTellsWhatWasPutOffFromWhatWasLost(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.queued(30)
		pending := func(id string, since time.Duration) operate.Explanation {
			t.Helper()
			e := g.rig.EventOf(put(id, 1))
			g.rig.Write(shard.Admit(shard.Admission{
				Doc: e.Doc, Key: e.Key, Class: e.Class, Flight: "gone", Now: micros().Add(-since),
			}))
			x, err := api.Explain(t.Context(), e.Doc)
			if err != nil || x.State != operate.StateUnheld {
				t.Fatalf("got %s, %v", x.State, err)
			}
			return x
		}
		if x := pending("early", 5*time.Minute); !strings.Contains(x.Sentence, "its flight was lost") {
			t.Errorf("without an outage: %s", x.Sentence)
		}
		g.rig.Write(shardtest.Put(was()))
		if x := pending("a", 5*time.Minute); !strings.Contains(x.Sentence, "put off") || !strings.Contains(x.Sentence, undefined) ||
			!strings.Contains(x.Sentence, "received again by") || strings.Contains(x.Sentence, "lost") {
			t.Errorf("admitted before the sink was back: %s", x.Sentence)
		}
		if x := pending("b", 10*time.Second); !strings.Contains(x.Sentence, "its flight was lost") {
			t.Errorf("admitted since: %s", x.Sentence)
		}
		g.commit(g.hold("g", put("c", 7)), `{}`)
		x, err := api.Explain(t.Context(), "content#c")
		if err != nil || !strings.Contains(x.Sentence, "one of the 30 messages in its queues may be about it") {
			t.Errorf("of what receive put off undecoded: %s, %v", x.Sentence, err)
		}
	})
}
