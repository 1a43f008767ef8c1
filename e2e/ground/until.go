package ground

import (
	"testing"
	"time"
)

// pace is the time between two questions. Emulators share two cores with the functions that they
// run.
const pace = 250 * time.Millisecond

// Patience is how long anything may take that is not itself about time: machines that run these
// tests are busy.
const Patience = 2 * time.Minute

// Until asks until the answer is yes. If Patience ends first, it fails the test and prints the last
// answer.
func Until(t testing.TB, what string, ask func() (yes bool, saw string)) {
	t.Helper()
	if saw, ok := wait(Patience, ask); !ok {
		t.Fatalf("not within %s: %s; last seen: %s", Patience, what, saw)
	}
}

// During asks again and again until the time is over, and fails the test at the first no.
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

// wait asks until the answer is yes or the time is over, and returns what was seen last.
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

// Long skips a test in CI, which has half an hour for everything. `make e2e` and the nightly run
// run it.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes more than a minute: make e2e runs it")
	}
}
