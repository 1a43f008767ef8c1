// SPDX-License-Identifier: Apache-2.0

package deadletter

import "testing"

// docs/errors.md shows the advice: TestErrors of internal/proof/docs writes it.
func TestEveryReasonHasAdvice(t *testing.T) {
	t.Parallel()
	for _, r := range reasons {
		if a, ok := advice[r]; !ok || a.Why == "" || a.Fix == "" {
			t.Errorf("reason %s: got advice %+v, want what it means and what to do", r, a)
		}
	}
	if a := Reason("of a newer version").Advice(); a.Why == "" || a.Fix == "" {
		t.Errorf("an unknown reason: got %+v, want some advice", a)
	}
}
