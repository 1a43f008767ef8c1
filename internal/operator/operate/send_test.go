// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
)

// calls makes the ground's queues keep the calls that they get, as "search live: 1 2". The messages
// whose bodies contain a key of refuse are not accepted.
func (g *ground) calls(refuse map[string]error) *[]string {
	var all []string
	g.Queues = func(sink string, lane flight.Lane) queue.Queue {
		return gets(func(out []queue.Outgoing) []error {
			call, errs := sink+" "+string(lane)+":", make([]error, len(out))
			for i, m := range out {
				e := g.rig.EventOf(m.Body)
				call += " " + e.Version
				errs[i] = refuse[sink+" "+e.Version]
			}
			all = append(all, call)
			return queue.Answer(errs)
		})
	}
	return &all
}

// numbered returns a message for each number. It is the version of the message's document.
func numbered(collections func(n int) string, to int) (out []queue.Outgoing) {
	for n := 1; n <= to; n++ {
		out = append(out, queue.Outgoing{Body: fmt.Sprintf(
			`{"type":"doc.changed","subject":"d","collection":%q,"sequence":"%d","data":{}}`, collections(n), n)})
	}
	return out
}

func content(int) string { return "content" }

// SQS accepts ten messages in a call, and each call costs as much as a call with one message.
func TestAPublicationSendsTenMessagesInACall(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		calls := g.calls(nil)
		done, err := api.Publish(t.Context(), operate.Publication{Messages: numbered(content, 25)})
		if err != nil || done.Messages != 25 || done.Events != 25 || len(done.Sent) != 25 {
			t.Errorf("got %+v, %v, want all sent", done, err)
		}
		for i, e := range done.Sent {
			if e.Message != i || e.Version != fmt.Sprint(i+1) {
				t.Errorf("event %d is %+v", i, e)
			}
		}
		want := []string{
			"search live: 1 2 3 4 5 6 7 8 9 10", "search live: 11 12 13 14 15 16 17 18 19 20",
			"search live: 21 22 23 24 25",
		}
		if !slices.Equal(*calls, want) {
			t.Errorf("got the calls %q, want %q", *calls, want)
		}
	})
}

// Each queue gets its messages in the order of the publication.
func TestEachQueueGetsItsMessagesTogether(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		calls := g.calls(nil)
		alternating := func(n int) string { return []string{"content", "far"}[n%2] }
		p := operate.Publication{Messages: numbered(alternating, 8), Lane: flight.Bulk}
		done, err := api.Publish(t.Context(), p)
		want := []string{"remote bulk: 1 3 5 7", "search bulk: 2 4 6 8"}
		if err != nil || done.Messages != 8 || !slices.Equal(*calls, want) {
			t.Errorf("got %+v, %v with the calls %q, want %q", done, err, *calls, want)
		}
	})
}

// An entry of a call can fail alone. The error names it, and everything before it is sent, also to
// other queues: the sender can continue there.
func TestAnEntryThatFailsIsNamedAndEverythingBeforeItIsSent(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		calls := g.calls(map[string]error{"remote 13": errors.New("throttled"), "remote 17": errors.New("throttled, too")})
		alternating := func(n int) string { return []string{"content", "far"}[n%2] }
		done, err := api.Publish(t.Context(), operate.Publication{Messages: append(numbered(alternating, 40),
			outgoing("not JSON")...)})
		// The number in the error counts from 0.
		if err == nil || !strings.Contains(err.Error(), "publish message 12 (12 before it were sent): throttled") {
			t.Errorf("got error %v, want it to name message 12", err)
		}
		want := []string{"remote live: 1 3 5 7 9 11 13 15 17 19", "search live: 2 4 6 8 10 12"}
		if !slices.Equal(*calls, want) {
			t.Errorf("got the calls %q, want %q", *calls, want)
		}
		if !g.remote && (done.Messages != 14 || len(done.Refused) != 0) {
			t.Errorf("got %+v, want 12 messages before the failed one, and 15 and 19", done)
		}
	})
}

// Only the queue knows that a message is too large for it. The others of its call are sent.
func TestAnEntryThatIsTooLargeIsRefusedAlone(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		calls := g.calls(map[string]error{"search 3": backoff.Permanent(queue.ErrTooLarge)})
		done, err := api.Publish(t.Context(), operate.Publication{Messages: numbered(content, 12)})
		if err != nil || done.Messages != 11 || len(done.Refused) != 1 || done.Refused[0].Message != 2 ||
			!strings.Contains(done.Refused[0].Why, "dataref") || len(*calls) != 2 {
			t.Errorf("got %+v, %v with the calls %q, want the third message refused", done, err, *calls)
		}
	})
}

// A message with two sinks is sent when both queues have it.
func TestAMessageOfTwoSinksIsSentWhenBothHaveIt(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		c := g.rig.Config.Collections["content"]
		c.Sinks = []string{"search", "remote"}
		g.rig.Config.Collections["content"] = c
		calls := g.calls(map[string]error{"remote 2": errors.New("throttled")})
		done, err := api.Publish(t.Context(), operate.Publication{Messages: numbered(content, 3)})
		if err == nil || !strings.Contains(err.Error(), "message 1 (1 before it were sent)") ||
			!g.remote && done.Messages != 2 || len(*calls) != 2 {
			t.Errorf("got %+v, %v with the calls %q, want the second message named", done, err, *calls)
		}
	})
}

// A `lull dev` takes messages one by one. It gets none after one that failed.
func TestAPublisherGetsNothingAfterAFailure(t *testing.T) {
	t.Parallel()
	g := setup(t)
	var got []string
	g.Publisher = func(_ context.Context, _ string, _ flight.Lane, out queue.Outgoing) error {
		version := g.rig.EventOf(out.Body).Version
		switch got = append(got, version); version {
		case "2":
			return backoff.Permanent(queue.ErrTooLarge)
		case "4":
			return errors.New("it stops")
		}
		return nil
	}
	done, err := g.API().Publish(t.Context(), operate.Publication{Messages: numbered(content, 6)})
	if err == nil || !strings.Contains(err.Error(), "publish message 3 (2 before it were sent): it stops") ||
		done.Messages != 2 || len(done.Refused) != 1 || !slices.Equal(got, []string{"1", "2", "3", "4"}) {
		t.Errorf("got %+v, %v after %q", done, err, got)
	}
}
