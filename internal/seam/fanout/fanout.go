// Package fanout runs the parts of one invocation beside each other, bounded.
//
// It is the seam to goroutines, as package clock is the seam to time: a use case never says go by
// itself. So the simulator can run the parts as coroutines, one at a time and in an order that a
// seed decides. Nothing else is gained or lost: the zero Runner starts goroutines.
package fanout

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Runner calls f(0) to f(n-1), at most limit of them at once, in no order that f may rely on, and
// returns when all have. nil is the zero Runner. A Runner is safe for concurrent use.
type Runner func(limit, n int, f func(i int))

// Panic is a panic of a part, as an error. Its text holds nothing of a document.
type Panic struct {
	Value any    // what the part panicked with: it may hold a document's content
	Stack []byte // where it did: the stack of whoever recovers it does not show that
}

// Error is the class of the value. Only the runtime's own texts are sure to hold no content.
func (p *Panic) Error() string {
	var own runtime.Error
	if err, ok := p.Value.(error); ok && errors.As(err, &own) {
		return "panic: " + own.Error()
	}
	return fmt.Sprintf("panic: %T", p.Value)
}

// Catch calls f and returns what it panicked with, nil for nothing. It keeps a panic where it
// belongs: to one message, one document or one request.
func Catch(f func()) (p *Panic) {
	defer func() {
		if v := recover(); v != nil {
			var nested bool
			if p, nested = v.(*Panic); !nested {
				p = &Panic{v, debug.Stack()}
			}
		}
	}()
	f()
	return nil
}

// Each calls f(0) to f(n-1) and returns when all of them have. A single part runs where it is.
//
// A panic of a part ends its goroutine. Each panics with a *[Panic], the first, once all goroutines
// have ended, so that its caller can recover. Parts that were not begun may then be left out.
func (r Runner) Each(limit, n int, f func(i int)) {
	switch {
	case r != nil:
		r(limit, n, f)
		return
	case n == 1:
		f(0)
		return
	}
	// As many goroutines as the limit, not as parts: a stack that has grown to a client's depth
	// once serves the parts that follow.
	var next atomic.Int64
	var wg sync.WaitGroup
	var panicked atomic.Pointer[Panic]
	for range min(max(limit, 1), n) {
		wg.Go(func() {
			p := Catch(func() {
				for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
					f(int(i))
				}
			})
			if p != nil {
				panicked.CompareAndSwap(nil, p)
			}
		})
	}
	wg.Wait()
	if p := panicked.Load(); p != nil {
		panic(p)
	}
}

// Map is Each over items: what f makes of each of them, in their order.
func Map[T, R any](r Runner, limit int, items []T, f func(T) R) []R {
	out := make([]R, len(items))
	r.Each(limit, len(items), func(i int) { out[i] = f(items[i]) })
	return out
}

// Try is Each for parts that may fail: all of them run, and the error is that of the first in order
// that failed.
func (r Runner) Try(limit, n int, f func(i int) error) error {
	errs := make([]error, n)
	r.Each(limit, n, func(i int) { errs[i] = f(i) })
	return cmp.Or(errs...)
}
