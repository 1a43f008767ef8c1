// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/clock/clocktest"
)

// sleeper is a context whose deadline looks, if asleep is set, as if the machine was suspended for
// an hour.
type sleeper struct {
	context.Context
	asleep *atomic.Bool
}

func (s sleeper) Deadline() (time.Time, bool) {
	if s.asleep.Load() {
		return clocktest.Suspended(s.Context, time.Hour).Deadline()
	}
	return s.Context.Deadline()
}

// While the machine was suspended, another program may have ended this rebuild, so that the new
// index lacks a write. Switch must then fail.
func TestANameIsNotSwitchedByAMachineThatWasSuspendedBeforeIt(t *testing.T) {
	t.Parallel()
	for _, sleeps := range []bool{false, true} {
		var asleep, switched atomic.Bool
		e := startResolving(t, func(w http.ResponseWriter, r request) {
			switch {
			case r.URL.Path == "/_aliases":
				switched.Store(true)
				io.WriteString(w, `{"acknowledged":true}`)
			case strings.HasSuffix(r.URL.Path, "/_refresh"):
				asleep.Store(sleeps)
				io.WriteString(w, `{}`)
			case strings.HasSuffix(r.URL.Path, "/_alias"):
				io.WriteString(w, `{"old":{"aliases":{"test-content":{}}}}`)
			default:
				io.WriteString(w, `{"count":1}`)
			}
		}, `{"aliases":[{"name":"test-content","indices":["old"]}]}`)
		ctx, cancel := withDeadline(t, 20*time.Second)
		err := e.sink(t, nil).Switch(sleeper{ctx, &asleep}, "content", "old", "new")
		cancel()
		refreshed := slices.ContainsFunc(e.seen(), func(r request) bool { return r.URL.Path == "/new/_refresh" })
		if switched.Load() == sleeps || (err == nil) == sleeps || !refreshed {
			t.Errorf("suspended: %t: switched: %t, refreshed: %t, %v", sleeps, switched.Load(), refreshed, err)
		}
	}
}
