package ground

import (
	"context"
	"testing"
	"time"
)

// pace is how often something is asked again. Emulators share two cores with what they run.
const pace = 250 * time.Millisecond

// Patience is how long anything may take that is not itself about time: machines that run these
// tests are busy.
const Patience = 2 * time.Minute

// Until asks until the answer is yes, and fails the test where the limit is over first, with what
// was seen last.
func Until(t testing.TB, limit time.Duration, what string, ask func(ctx context.Context) (yes bool, saw string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		yes, saw := ask(ctx)
		if yes {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %s: %s; last seen: %s", limit, what, saw)
		}
	}
}

// During asks again and again until the time is over, and fails the test at the first no.
func During(t testing.TB, length time.Duration, what string, ask func(ctx context.Context) (yes bool, saw string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), length+Patience)
	defer cancel()
	end := time.NewTimer(length)
	defer end.Stop()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for asked := 0; ; asked++ {
		if yes, saw := ask(ctx); !yes {
			t.Fatalf("%s: no longer, after %d times yes: %s", what, asked, saw)
		}
		select {
		case <-tick.C:
		case <-end.C:
			return
		}
	}
}
