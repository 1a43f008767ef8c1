// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"testing"
	"time"
)

// pace is the time between two checks of a condition. It is not shorter, because emulators share
// two cores with the functions that they run.
const pace = 250 * time.Millisecond

// Patience is the time limit for everything that a test waits for, unless the test is about time.
// It is long, because machines that run these tests are busy.
const Patience = 2 * time.Minute

// Until calls ask until the answer is yes. If Patience ends first, it fails the test and prints the
// last answer.
func Until(t testing.TB, what string, ask func() (yes bool, saw string)) {
	t.Helper()
	if saw, ok := wait(Patience, ask); !ok {
		t.Fatalf("not within %s: %s; last seen: %s", Patience, what, saw)
	}
}

// During calls ask repeatedly for this time, and fails the test at the first no.
func During(t testing.TB, length time.Duration, what string, ask func() (yes bool, saw string)) {
	t.Helper()
	asked := 0
	saw, changed := wait(length, func() (bool, string) {
		asked++
		yes, saw := ask()
		return !yes, saw
	})
	if changed {
		t.Fatalf("%s: no longer, after %d times: %s", what, asked, saw)
	}
}

// wait calls ask until the answer is yes or the time is over, and returns the last answer.
func wait(limit time.Duration, ask func() (yes bool, saw string)) (saw string, ok bool) {
	over, tick := time.After(limit), time.Tick(pace)
	for {
		if ok, saw = ask(); ok {
			return saw, true
		}
		select {
		case <-tick:
		case <-over:
			return saw, false
		}
	}
}

// Long skips a test in CI, where all tests together have half an hour. `make e2e` and the nightly
// job run the test.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes more than a minute: make e2e runs it")
	}
}
