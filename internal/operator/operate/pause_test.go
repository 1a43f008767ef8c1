// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

func TestAPauseIsShownUntilItIsResumed(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.hold("f", put("a", 7))
		order := operate.PauseOrder{Sink: "search", By: "ann", Why: "an index is moved"}
		done, err := api.Pause(t.Context(), order)
		if err != nil || len(done.Sinks) != 1 || !done.Sinks[0].Changed || done.Sinks[0].Sink != "search" {
			t.Fatalf("got %+v, error %v", done, err)
		}
		p := done.Sinks[0].Pause
		if p.By != "ann" || p.Why != "an index is moved" || time.Since(p.Since) > time.Minute ||
			!p.DeadFrom.Equal(p.Since.Add(g.Config.Retry.DeadDeadline)) {
			t.Errorf("pause %+v", p)
		}
		again, err := api.Pause(t.Context(), operate.PauseOrder{All: true, By: "bob"})
		if err != nil || len(again.Sinks) != 2 || !again.Sinks[0].Changed || again.Sinks[1].Changed ||
			again.Sinks[1].Pause.By != "ann" {
			t.Errorf("got %+v, error %v, want the first pause kept", again, err)
		}
		s, err := api.Status(t.Context())
		if err != nil || s.Sinks[0].Pause.By != "bob" || s.Sinks[1].Pause.Why != "an index is moved" ||
			len(s.Wrong) > 0 {
			t.Errorf("status %+v, error %v", s, err)
		}
		x, err := api.Explain(t.Context(), "content#a")
		if err != nil || x.State != operate.StatePaused || !strings.Contains(x.Sentence, "ann paused the sink") ||
			!strings.Contains(x.Sentence, "(an index is moved)") {
			t.Errorf("explained as %s: %s, error %v", x.State, x.Sentence, err)
		}
		done, err = api.Resume(t.Context(), operate.PauseOrder{All: true, By: "cat"})
		if err != nil || len(done.Sinks) != 2 || !done.Sinks[1].Changed || done.Sinks[1].Pause.By != "ann" {
			t.Errorf("got %+v, error %v", done, err)
		}
		if done, err = api.Resume(t.Context(), order); err != nil || done.Sinks[0].Changed ||
			done.Sinks[0].Pause != nil {
			t.Errorf("got %+v, error %v, want nothing to resume", done, err)
		}
		if s, err = api.Status(t.Context()); err != nil || s.Sinks[0].Pause != nil || s.Sinks[1].Pause != nil ||
			s.Sinks[1].Rate <= 0 || !s.Sinks[1].Growing {
			t.Errorf("status %+v, error %v, want no pause, and a rate that grows", s, err)
		}
		g.rig.Write(shard.Write{Doc: shard.HealthRow("search"), Update: []shard.Action{
			{Verb: shard.Set, Attr: shard.AttrRateTop, Val: shard.Value{Kind: shard.KindNumber, Num: 20_000}},
		}})
		if s, err = api.Status(t.Context()); err != nil || s.Sinks[1].Rate <= 0 || s.Sinks[1].Growing {
			t.Errorf("status %+v, error %v, want a sink that throttles", s, err)
		}
		for step, want := range map[journal.Step]int{journal.Paused: 2, journal.Resumed: 2} {
			notes := g.rig.Notes.Of(step)
			if len(notes) != want || !strings.Contains(notes[0].Detail, "by ") || notes[0].Sink == "" {
				t.Errorf("noted %+v, want %d %s", notes, want, step)
			}
		}
	})
}

func TestAPauseThatIsNotOneIsRefused(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		for want, o := range map[string]operate.PauseOrder{
			"name the operator": {All: true}, "remote, search": {By: "ann"}, "one sink, or all": {By: "ann", All: true, Sink: "search"},
			`"other"`: {By: "ann", Sink: "other"},
		} {
			for _, do := range []func() error{
				func() error { _, err := api.Pause(t.Context(), o); return err },
				func() error { _, err := api.Resume(t.Context(), o); return err },
			} {
				if err := do(); !errors.Is(err, operate.ErrInput) || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want ErrInput and %q", err, want)
				}
			}
		}
		g.rig.Write(shard.Write{Doc: shard.HealthRow("search"), Update: []shard.Action{
			{Verb: shard.Set, Attr: shard.AttrSchema, Val: shard.Value{Kind: shard.KindNumber, Num: 99}},
		}})
		if _, err := api.Pause(t.Context(), operate.PauseOrder{All: true, By: "ann"}); err == nil ||
			!strings.Contains(err.Error(), "sink search") || !strings.Contains(err.Error(), "newer schema") {
			t.Errorf("got %v, want the sink and the newer schema", err)
		}
	})
}

// A pause that was forgotten is wrong before it costs anything.
func TestAPauseIsWrongBeforeItsMessagesDie(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		for ago, want := range map[time.Duration]int{time.Hour: 0, g.Config.Retry.DeadDeadline - 11*time.Hour: 1} {
			at := shard.MicrosOf(time.Now().Add(-ago))
			g.rig.Write(shard.Pause("search", at, "ann", ""))
			s, err := api.Status(t.Context())
			if err != nil || len(s.Wrong) != want || want > 0 && !strings.Contains(s.Wrong[0], "lull resume search") {
				t.Errorf("%s ago: %q, error %v", ago, s.Wrong, err)
			}
			g.rig.Write(shard.Resume("search", g.rig.Row(shard.HealthRow("search")), micros(), g.Config.Retry.OpenFor))
		}
	})
}
