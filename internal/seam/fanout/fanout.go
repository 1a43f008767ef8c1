// SPDX-License-Identifier: Apache-2.0

// Package fanout runs the parts of one invocation at the same time, with a limit.
//
// lull's functions start no goroutines themselves: they call this package. So the simulator can run
// the parts as coroutines, one at a time, in an order that a seed decides. The zero Runner starts
// goroutines.
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

// Runner calls f(0) to f(n-1), at most limit of them at once, and returns when all have returned. f
// must not rely on any order. A nil Runner starts goroutines, see [Runner.Each]. A Runner is safe
// for concurrent use.
type Runner func(limit, n int, f func(i int))

// Panic is a panic of a part, as an error. The error text holds no content of a document.
type Panic struct {
	Value any    // the value of the panic, which may hold a document's content
	Stack []byte // the stack of the part, which the goroutine that recovers does not have
}

// Error returns the class of the value. Only texts of the Go runtime are certain to hold no
// content.
func (p *Panic) Error() string {
	var own runtime.Error
	if err, ok := p.Value.(error); ok && errors.As(err, &own) {
		return "panic: " + own.Error()
	}
	return fmt.Sprintf("panic: %T", p.Value)
}

// Catch calls f and returns the panic of f, or nil. So a panic fails only one message, one document
// or one request.
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

// Each calls f(0) to f(n-1) and returns when all have returned. A single part runs on the caller's
// goroutine.
//
// A panic of a part ends the goroutine of the part. When all goroutines have ended, Each panics
// with the first panic as a *[Panic], so that the caller can recover. Then parts that had not
// started may be skipped.
func (r Runner) Each(limit, n int, f func(i int)) {
	switch {
	case r != nil:
		r(limit, n, f)
		return
	case n == 1:
		f(0)
		return
	}
	// Start as many goroutines as the limit, not as parts. A client's deep calls make a stack grow,
	// and the next parts use the grown stack.
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

// Map calls f for each item, as Each does, and returns the results in the order of the items.
func Map[T, R any](r Runner, limit int, items []T, f func(T) R) []R {
	out := make([]R, len(items))
	r.Each(limit, len(items), func(i int) { out[i] = f(items[i]) })
	return out
}

// Try calls f(0) to f(n-1), as Each does, for parts that may fail. All parts run. Try returns the
// error of the failed part with the lowest number.
func (r Runner) Try(limit, n int, f func(i int) error) error {
	errs := make([]error, n)
	r.Each(limit, n, func(i int) { errs[i] = f(i) })
	return cmp.Or(errs...)
}
