// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
)

func TestStatusSaysSinceWhenASinkIsUnhealthy(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		retry, tripped := g.Config.Retry, micros()
		g.rig.Write(shard.Trip("remote", tripped, tripped.Add(retry.OpenFor(1)), 1))
		s := usecasetest.Must(api.Status(t.Context()))(t)
		if got := s.Sinks[0]; !got.Since.Equal(tripped.Time()) || !s.Sinks[1].Since.IsZero() {
			t.Errorf("sinks %+v, want the first unhealthy since %s", s.Sinks, tripped.Time())
		}
	})
}

func TestStatusSaysHowTheStackKeepsUp(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		if s := usecasetest.Must(api.Status(t.Context()))(t); s.Flow != nil {
			t.Errorf("nothing measures the stack: %+v", s.Flow)
		}
		want := operate.Flow{Span: time.Minute, In: 7, P50: time.Second, Oldest: time.Unix(1000, 0).UTC()}
		g.Flow = func(context.Context) (operate.Flow, error) { return want, nil }
		s := usecasetest.Must(api.Status(t.Context()))(t)
		want.Promise, want.Late = s.Flow.Promise, s.Flow.Late
		if *s.Flow != want || want.Promise != g.Config.LongestFresh() || want.Late <= want.Promise {
			t.Errorf("got %+v, want %+v", *s.Flow, want)
		}
		g.Flow = func(context.Context) (operate.Flow, error) { return want, errors.New("no right") }
		if s = usecasetest.Must(api.Status(t.Context()))(t); s.Flow.Unknown != "no right" || s.Flow.In != 0 {
			t.Errorf("got %+v, want why it is unknown", s.Flow)
		}
	})
}
