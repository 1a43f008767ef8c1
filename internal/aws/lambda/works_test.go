// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/config"
)

func TestTheEventNamesTheWork(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		event string
		fails string // a text of the error; empty if the invocation succeeds
		did   string
		count string // a metric that must be counted once
	}{
		"a work":         {event: `{"work":"canary"}`, did: "canary"},
		"another work":   {event: `{"work":"verify"}`, did: "verify", fails: "no table"},
		"a panic":        {event: `{"work":"panic"}`, fails: "panic", count: metrics.Panics},
		"an unknown one": {event: `{"work":"sweep"}`, fails: `no work of this function: "sweep"`, count: metrics.InvalidEvents},
		"none":           {event: `{}`, fails: "no work", count: metrics.InvalidEvents},
		"no JSON":        {event: `{"work`, fails: "no work", count: metrics.InvalidEvents},
		"a long name": {
			event: `{"work":"` + strings.Repeat("x", 500) + `"}`, fails: strings.Repeat("x", 40) + `"`,
			count: metrics.InvalidEvents,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, out := newJournal()
			did := ""
			w := Works{Limit: time.Minute, Journal: j, Do: map[config.Work]func(context.Context) error{
				"canary": func(ctx context.Context) error {
					if end, ok := ctx.Deadline(); !ok || time.Until(end) > time.Minute-workMargin {
						t.Error("the work has no time left to store its progress")
					}
					did = "canary"
					return nil
				},
				"verify": func(context.Context) error {
					did = "verify"
					return errors.New("no table")
				},
				"panic": func(context.Context) error { panic("odd") },
			}}
			answer, err := w.Invoke(t.Context(), []byte(tt.event))
			switch {
			case did != tt.did:
				t.Errorf("it did %q, want %q", did, tt.did)
			case tt.fails == "" && (err != nil || string(answer) != "{}"):
				t.Errorf("got %s, %v", answer, err)
			case tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)):
				t.Errorf("got %v, want %q", err, tt.fails)
			case tt.count != "" && total(t, out, tt.count) != 1:
				t.Errorf("%s is not counted: %s", tt.count, out)
			}
		})
	}
}
