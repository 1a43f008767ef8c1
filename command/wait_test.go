// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"math"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/searchable"
)

// window is a stack that answers with the settings of a collection, and in which nothing is
// committed.
type window struct{ says operate.Explanation }

func (w window) Explain(context.Context, shard.DocID) (operate.Explanation, error) {
	return w.says, nil
}

// refreshing is a stack whose engine shows a committed version to searches after some questions.
type refreshing struct {
	window

	asked *atomic.Int64
	after int64 // how many questions the engine answers with no; negative for unknown
}

func (r refreshing) Searchable(_ context.Context, q searchable.Question) (searchable.Answer, error) {
	in := searchable.Sink{Sink: "search", Committed: r.says.Committed, Searchable: searchable.Yes}
	switch {
	case r.after < 0:
		in.Searchable, in.Why = searchable.Unknown, "the kind webhook does not say what a search finds"
	case r.asked.Add(1) <= r.after:
		in.Searchable, in.Why = searchable.No, "the engine has not refreshed"
	}
	return searchable.Answer{Key: q.Key, Sinks: []searchable.Sink{in}}, nil
}

// With --searchable, a wait ends when a search finds the version, and not when it is committed.
func TestAWaitForSearchableAsksTheEngine(t *testing.T) {
	t.Parallel()
	seven, err := shard.ParseVersion(shard.ClassInt, "7")
	if err != nil {
		t.Fatal(err)
	}
	k, err := shard.NewOrderKey(shard.Parts{Version: seven, Digest: [8]byte{1}})
	if err != nil {
		t.Fatal(err)
	}
	committed := operate.Explanation{Key: "content#a", Committed: k.String(), Sentence: "It is fresh."}
	for name, c := range map[string]struct {
		after int64
		code  exitCode
		says  string
	}{
		"at once":       {0, exitOK, "It is fresh."},
		"after a while": {3, exitOK, "It is fresh."},
		"never":         {math.MaxInt64, exitMissing, "committed, but not searchable in time: sink search: the engine has not refreshed"},
		"unknown":       {-1, exitFailed, "sink search: the kind webhook does not say"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := new(atomic.Int64)
			stack := operatetest.API(operate.API{}, refreshing{window{committed}, asked, c.after})
			s := httptest.NewServer(operate.Handler(stack))
			defer s.Close()
			timeout := "1m"
			if c.after == math.MaxInt64 {
				timeout = "1s"
			}
			lull(t, "", "wait", "content#a", "--version", "7", "--searchable", "--timeout", timeout, "--dev", s.URL).
				want(t, name, c.code, c.says)
			if c.after > 0 && c.after < 10 && asked.Load() != c.after+1 {
				t.Errorf("asked %d times, want %d", asked.Load(), c.after+1)
			}
			if code := lull(t, "", "wait", "content#a", "--version", "7", "--dev", s.URL); code.code != exitOK {
				t.Errorf("without --searchable: exit code %d, want 0", code.code)
			}
		})
	}
}

// Without a timeout, a wait takes longer than the quiet window or the pace of the document's
// collection.
func TestAWaitOutlastsTheWindow(t *testing.T) {
	for name, c := range map[string]struct {
		quiet, pace, timeout, want time.Duration
	}{
		"the defaults":   {5 * time.Second, time.Second, 0, 65 * time.Second},
		"a long window":  {5 * time.Minute, time.Second, 0, 6 * time.Minute},
		"a long pace":    {5 * time.Second, time.Hour, 0, 61 * time.Minute},
		"with --timeout": {5 * time.Minute, time.Second, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				stack := operatetest.API(operate.API{}, window{operate.Explanation{Quiet: c.quiet, Pace: c.pace}})
				_, err := waitUntil(t.Context(), stack, "content#a", "version 1", c.timeout,
					func(operate.Explanation) (bool, error) { return false, nil })
				took := time.Since(began)
				if err == nil || !strings.Contains(err.Error(), "within "+c.want.String()) || took != c.want {
					t.Errorf("%v after %s, want it after %s", err, took, c.want)
				}
			})
		})
	}
}
