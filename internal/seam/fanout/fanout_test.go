// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEachRunsEveryPartOnceAndNeverMoreThanTheLimitAtATime(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 7, 100} {
		synctest.Test(t, func(t *testing.T) {
			const limit = 5
			ran := make([]atomic.Int32, n)
			var now, most atomic.Int32
			Runner(nil).Each(limit, n, func(i int) {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Millisecond) // so that as many parts run at once as the limit allows
				now.Add(-1)
				ran[i].Add(1)
			})
			for i := range ran {
				if got := ran[i].Load(); got != 1 {
					t.Errorf("%d parts: part %d ran %d times", n, i, got)
				}
			}
			if got, want := most.Load(), int32(min(n, limit)); got != want {
				t.Errorf("%d parts: %d at a time, want %d", n, got, want)
			}
		})
	}
}

func TestARunnerDecidesTheOrderOfTheParts(t *testing.T) {
	t.Parallel()
	var order []int
	backwards := Runner(func(_, n int, f func(int)) {
		for i := n - 1; i >= 0; i-- {
			f(i)
		}
	})
	backwards.Each(2, 3, func(i int) { order = append(order, i) })
	if len(order) != 3 || order[0] != 2 || order[2] != 0 {
		t.Errorf("order %v, want 2 1 0", order)
	}
}

func TestTryRunsAllAndReturnsTheFirstErrorInOrder(t *testing.T) {
	t.Parallel()
	first, second := errors.New("first"), errors.New("second")
	var ran atomic.Int32
	err := Runner(nil).Try(2, 4, func(i int) error {
		ran.Add(1)
		return []error{nil, first, nil, second}[i]
	})
	if !errors.Is(err, first) || ran.Load() != 4 {
		t.Errorf("error %v after %d parts, want %v after 4", err, ran.Load(), first)
	}
	if err := Runner(nil).Try(2, 0, nil); err != nil {
		t.Errorf("no parts: %v", err)
	}
}

// A recover does not work across goroutines. Without the recover of Each, a panic on one message
// would end the process and fail the whole batch. The stack must show the part that panicked,
// because the log shows only that stack.
func TestAPanicOfAPartReachesWhoeverCalled(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 20} {
		var ended atomic.Int32
		got := func() (p *Panic) {
			defer func() { p, _ = recover().(*Panic) }()
			Runner(nil).Each(2, 2, func(outer int) {
				if outer == 0 {
					return
				}
				Runner(nil).Each(2, n, func(i int) {
					defer ended.Add(1)
					if i == 0 {
						oddMessage()
					}
				})
			})
			return nil
		}()
		if got == nil || got.Value != "odd message" || !strings.Contains(string(got.Stack), "oddMessage") {
			t.Errorf("%d parts: recovered %+v, want the first panic with its stack", n, got)
		}
		if ended.Load() != int32(n) {
			t.Errorf("%d of %d parts ended", ended.Load(), n)
		}
	}
}

func oddMessage() { panic("odd message") }
