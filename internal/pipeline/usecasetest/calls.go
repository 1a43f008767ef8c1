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

// Decide is an injector by function.
type Decide func(op fault.Op) fault.Verdict

// Decide asks the function.
func (d Decide) Decide(_ context.Context, _ *fault.Invocation, op fault.Op) fault.Verdict {
	return d(op)
}

// Healthy lets every call through.
var Healthy = Decide(func(fault.Op) fault.Verdict { return fault.OK })

// Where fails the calls that are meant, and lets the others through.
func Where(what fault.Verdict, meant func(op fault.Op) bool) fault.Injector {
	return Decide(func(op fault.Op) fault.Verdict {
		if meant(op) {
			return what
		}
		return fault.OK
	})
}

// Always makes every call of that name fail as told.
func Always(call string, what fault.Verdict) fault.Injector {
	return Where(what, func(op fault.Op) bool { return op.Call == call })
}

// Away makes every call of a service fail as told.
func Away(from fault.Service, what fault.Verdict) fault.Injector {
	return Where(what, func(op fault.Op) bool { return op.Service == from })
}

// On runs f before every call of that name and lets all calls through.
func On(call string, f func(op fault.Op)) fault.Injector {
	return Decide(func(op fault.Op) fault.Verdict {
		if op.Call == call {
			f(op)
		}
		return fault.OK
	})
}

// Fails makes the next n calls of that name fail as told, all of them where n is below 0.
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

// At runs f before the first call of that name and lets all calls through.
func At(call string, f func()) fault.Injector {
	var once sync.Once
	return On(call, func(fault.Op) { once.Do(f) })
}

// class is the class of the error Denied.
const class = "AccessDeniedException"

// Denied is an error as an AWS service gives it, for good.
var Denied = backoff.Permanent(denied{})

type denied struct{}

func (denied) Error() string     { return class + ": the role may not do this" }
func (denied) ErrorCode() string { return class }

// FailingCall makes one call of a story fail for good: the n-th.
type FailingCall struct {
	mu   sync.Mutex
	n    int
	seen []fault.Op
}

// Decide counts the call.
func (f *FailingCall) Decide(_ context.Context, _ *fault.Invocation, op fault.Op) fault.Verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen = append(f.seen, op); len(f.seen) == f.n {
		return fault.FailBefore
	}
	return fault.OK
}

// NoErrorIsLost plays a story once for every call that it makes, with that call failing. The class
// of the failure must be in a note or in the error that the story returns. The story itself checks
// that nothing is lost.
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
				want = "injected" // outcomes tell their own reason
			}
			told := fmt.Sprint(err)
			for _, x := range notes {
				told += "\n" + string(x.Step) + " " + x.Detail
			}
			if !strings.Contains(told, want) {
				t.Errorf("call %d, %s %s, failed, and nobody was told:%s", n, op.Service, op.Call, told)
			}
		})
	}
	t.Logf("every call failed once: %v", calls)
}
