// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
)

func TestComposeWritesWhatPublishTakes(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		for _, c := range []operate.Composition{
			{ID: "a", Data: []byte(`{"title":"A"}`)}, {ID: "<b>\u202e", Collection: "far"}, {ID: "a", Delete: true, Deletes: true},
		} {
			m, err := api.Compose(t.Context(), c)
			if strings.Contains(c.ID, "\u202e") {
				if !errors.Is(err, operate.ErrInput) {
					t.Errorf("compose %+v: %+v and %v, want it refused", c, m, err)
				}
				continue
			}
			if err != nil || m.Key != "content#a" || m.Source != "native" || m.Version == "" || m.Ref != "" {
				t.Errorf("compose %+v: %+v and %v", c, m, err)
			}
			done, err := api.Publish(t.Context(), operate.Publication{Messages: outgoing(m.Message.Body)})
			if err != nil || done.Messages != 1 || len(done.Refused) > 0 {
				t.Errorf("publish %s: %+v and %v", m.Message.Body, done, err)
			}
		}
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		older, err := api.Compose(t.Context(), operate.Composition{ID: "a", At: at})
		newer, err2 := api.Compose(t.Context(), operate.Composition{ID: "a", At: at.Add(time.Millisecond)})
		if err := errors.Join(err, err2); err != nil || older.Version == newer.Version {
			t.Errorf("versions %s and %s, and %v, want one for each time", older.Version, newer.Version, err)
		}
		for want, c := range map[string]operate.Composition{
			"id:": {}, `"nobody" names nothing`: {ID: "a", Source: "nobody"},
			"no source writes to collection": {ID: "a", Collection: "none"},
		} {
			m, err := api.Compose(t.Context(), c)
			if !errors.Is(err, operate.ErrInput) || !strings.Contains(err.Error(), want) {
				t.Errorf("compose %+v: %+v and %v, want %q", c, m, err, want)
			}
		}
		if n := g.queues["search live"].Counts().Visible; n != 2 {
			t.Errorf("%d messages were sent, want 2", n)
		}
	})
}
