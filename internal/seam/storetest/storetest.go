// SPDX-License-Identifier: Apache-2.0

// Package storetest holds helpers that the conformance suites of lull's stores share. The helpers
// run a suite, and read a list page by page. They start callers at the same time, and check calls
// under a context that has ended.
package storetest

import (
	"context"
	"sync"
	"testing"
)

// Run runs the checks of a suite in parallel, by name. open returns the store that one check tests.
// Run calls open for each check.
func Run[S any](t *testing.T, open func(t *testing.T) S, promises map[string]func(S)) {
	t.Helper()
	for name, check := range promises {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(open(t))
		})
	}
}

// OK ends the test if a call failed.
func OK(t testing.TB, call string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", call, err)
	}
}

// Walk reads a list page by page and returns its items. A page may have fewer items than limit,
// even none, but never more.
func Walk[T any](t testing.TB, limit int, list func(cursor string, limit int) ([]T, string, error)) []T {
	t.Helper()
	var all []T
	for cursor := ""; ; {
		page, next, err := list(cursor, limit)
		OK(t, "list", err)
		if len(page) > limit {
			t.Fatalf("a page has %d items, want at most %d", len(page), limit)
		}
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// AtOnce lets n callers start at the same time, and returns when all of them are done.
func AtOnce(n int, call func(i int)) {
	var callers sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		callers.Go(func() {
			<-begin
			call(i)
		})
	}
	close(begin)
	callers.Wait()
}

// Ended returns a context that has ended.
func Ended(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Failed checks that each of the calls, by name, returned an error.
func Failed(t testing.TB, calls map[string]error) {
	t.Helper()
	for name, err := range calls {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
