// SPDX-License-Identifier: Apache-2.0

package usecasetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/journal"
)

// Decide is an injector that asks a function.
type Decide func(op fault.Op) fault.Verdict

// Decide returns the verdict of the function.
func (d Decide) Decide(_ context.Context, _ *fault.Invocation, op fault.Op) fault.Verdict {
	return d(op)
}

// Healthy makes no call fail.
var Healthy = Decide(func(fault.Op) fault.Verdict { return fault.OK })

// Where gives the verdict what to the calls that the function meant selects, and lets all other
// calls pass.
func Where(what fault.Verdict, meant func(op fault.Op) bool) fault.Injector {
	return Decide(func(op fault.Op) fault.Verdict {
		if meant(op) {
			return what
		}
		return fault.OK
	})
}

// Always gives the same verdict to every call of that name.
func Always(call string, what fault.Verdict) fault.Injector {
	return Where(what, func(op fault.Op) bool { return op.Call == call })
}

// Away gives the same verdict to every call of a service.
func Away(from fault.Service, what fault.Verdict) fault.Injector {
	return Where(what, func(op fault.Op) bool { return op.Service == from })
}

// On runs f before every call of that name and lets all calls pass.
func On(call string, f func(op fault.Op)) fault.Injector {
	return Decide(func(op fault.Op) fault.Verdict {
		if op.Call == call {
			f(op)
		}
		return fault.OK
	})
}

// Fails gives the verdict to the next n calls of that name, or to all of them if n is negative.
func Fails(call string, what fault.Verdict, n int) fault.Injector {
	var mu sync.Mutex
	return Where(what, func(op fault.Op) bool {
		mu.Lock()
		defer mu.Unlock()
		if op.Call != call || n == 0 {
			return false
		}
		n--
		return true
	})
}

// At runs f before the first call of that name and lets all calls pass.
func At(call string, f func()) fault.Injector {
	var once sync.Once
	return On(call, func(fault.Op) { once.Do(f) })
}

// class is the error code of the error Denied.
const class = "AccessDeniedException"

// Denied is a permanent error as an AWS service returns it.
var Denied = backoff.Permanent(denied{})

type denied struct{}

func (denied) Error() string     { return class + ": the role may not do this" }
func (denied) ErrorCode() string { return class }

// FailingCall makes exactly one call of a story fail: the n-th.
type FailingCall struct {
	mu   sync.Mutex
	n    int
	seen []fault.Op
}

// Decide counts the call, and makes the n-th call fail.
func (f *FailingCall) Decide(_ context.Context, _ *fault.Invocation, op fault.Op) fault.Verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen = append(f.seen, op); len(f.seen) == f.n {
		return fault.FailBefore
	}
	return fault.OK
}

// NoErrorIsLost runs a story once for every call that the story makes, with that call failing. The
// class of the failure must be in a note or in the error that the story returns. The story itself
// checks that no message is lost.
func NoErrorIsLost(t *testing.T, story func(t *testing.T, f *FailingCall) ([]journal.Note, error)) {
	t.Helper()
	calls := map[string]int{}
	for n, more := 1, true; more; n++ {
		synctest.Test(t, func(t *testing.T) {
			f := &FailingCall{n: n}
			notes, err := story(t, f)
			if more = n <= len(f.seen); !more {
				return
			}
			op := f.seen[n-1]
			calls[op.Call]++
			want := class
			if op.Writes() {
				want = "injected" // outcomes of the sink have their own reason
			}
			told := fmt.Sprint(err)
			for _, x := range notes {
				told += "\n" + string(x.Step) + " " + x.Detail
			}
			if !strings.Contains(told, want) {
				t.Errorf("call %d, %s %s, failed, but neither a note nor the error says so:%s", n, op.Service, op.Call, told)
			}
		})
	}
	t.Logf("every call failed once: %v", calls)
}
