//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
)

// saved is a message of the invented wiki.
func saved(space, title string, revision int) string {
	return fmt.Sprintf(`{"action":"saved","page":{"space":%q,"title":%q,"revision":%d},"content":{"text":"revision %d"}}`,
		space, title, revision, revision)
}

// A sink and a source that lull does not have are deployed with a user's own programs. What the
// wiki sends becomes lines in the bucket: the newest revision of a burst, once.
func TestAKindOfSinkAndASourceOfOnesOwn(t *testing.T) {
	ground.Long(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	s, err := here.DeployOwn(ctx, "examples/outoftree", "wiki", "lake")
	if err != nil {
		t.Fatal(err)
	}
	// shows waits until nothing is under way, and compares all that was ever written.
	shows := func(want ...string) {
		t.Helper()
		s.Drained(t)
		var got []string
		for _, l := range s.Lines(t) {
			got = append(got, fmt.Sprintf("%s %s: %v", l.Op, l.Doc, l.Document["text"]))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the bucket has %q, want %q", got, want)
		}
	}
	s.DirectBodies(t, saved("handbook", "Leave", 1), saved("handbook", "Leave", 3), saved("handbook", "Leave", 2),
		saved("gossip", "Leave", 7)) // not a space of lull.yaml
	const third = "put pages#handbook/Leave: revision 3"
	shows(third)
	s.DirectBodies(t, saved("handbook", "Leave", 2))
	shows(third)
	s.DirectBodies(t, saved("handbook", "Leave", 4), `{"action":"removed","page":{"space":"handbook","title":"Leave","revision":5}}`)
	shows(third, "delete pages#handbook/Leave: <nil>")
	if d := s.Depth(t, s.Dead); d != (ground.Depth{}) {
		t.Errorf("the dead-letter queue has %+v, want nothing", d)
	}
}
