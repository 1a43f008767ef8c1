// SPDX-License-Identifier: Apache-2.0

package commitfeed

import (
	"context"
	"reflect"
	"sort"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rows takes a document through several writes and returns the events of these writes.
func rows(t *testing.T, story func(r *usecasetest.Rig)) (events []Event) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := usecasetest.Open(t, nil)
		r.Shards.Watch = func(before, after shard.Row) {
			if e, ok := Of(before, after, time.Now()); ok {
				events = append(events, e)
			}
		}
		story(r)
	})
	return events
}

func TestOnlyACommitTells(t *testing.T) {
	t.Parallel()
	events := rows(t, func(r *usecasetest.Rig) {
		first, second := r.EventOf(usecasetest.Put("a", 9)), r.EventOf(usecasetest.Put("a", 10))
		r.Admit(first)
		lease := r.Claim(first)
		r.Admit(second) // the first version is being written now
		r.Commit(lease, shard.Put)
		time.Sleep(time.Minute)
		r.Commit(r.Claim(second), shard.Put)
		r.Write(shard.Pause("search", usecasetest.Now(), "ann", "a move")) // the row of a sink, not of a document
		time.Sleep(time.Minute)
		gone := r.EventOf(`{"type":"doc.deleted","subject":"a","sequence":"11"}`)
		r.Admit(gone)
		r.Commit(r.Claim(gone), shard.Delete)
	})
	want := []Event{
		{Operation: shard.Put, Version: "9", Written: true},
		{Operation: shard.Put, Version: "10", Written: true},
		{Operation: shard.Delete, Version: "11", Written: true},
	}
	var keys []string
	for i, e := range events {
		keys = append(keys, e.OrderKey)
		if e.Key != "content#a" || e.Collection != "content" || e.ID != "a" || e.At.IsZero() || e.Run != "" {
			t.Errorf("event %d: got %+v", i, e)
		}
		events[i] = Event{Operation: e.Operation, Version: e.Version, Written: e.Written}
	}
	if !reflect.DeepEqual(events, want) {
		t.Errorf("got %+v, want %+v", events, want)
	}
	if !sort.StringsAreSorted(keys) {
		t.Errorf("got %q, want texts that sort as the versions do", keys)
	}
}

func TestAChangeThatIsNoCommitMakesNoEvent(t *testing.T) {
	t.Parallel()
	r := usecasetest.Open(t, nil)
	k, older := r.EventOf(usecasetest.Put("a", 2)).Key, r.EventOf(usecasetest.Put("a", 1)).Key
	row := func(doc shard.DocID, committed shard.OrderKey) shard.Row {
		return shard.Row{Doc: doc, Committed: committed, CommittedOp: shard.Put}
	}
	floor, err := k.Parts()
	if err != nil {
		t.Fatal(err)
	}
	floor.Time, floor.Digest = time.Time{}, shard.Digest{}
	reset, err := shard.NewOrderKey(floor)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string][2]shard.Row{
		"the same commit":                {row("content#a", k), row("content#a", k)},
		"a commit taken back":            {row("content#a", k), row("content#a", older)},
		"a reset":                        {row("content#a", ""), row("content#a", reset)},
		"a row that prune collected":     {row("content#a", k), {Doc: "content#a"}},
		"a row that is not a document's": {row("!health", ""), row("!health", k)},
		"a key that cannot be parsed":    {row("content#a", ""), row("content#a", "zzz")},
	} {
		if e, ok := Of(c[0], c[1], time.Now()); ok {
			t.Errorf("%s: got %+v", name, e)
		}
	}
	// KEEP commits without a write to the sink, because the sink already has this content.
	before, after := row("content#a", older), row("content#a", k)
	before.LastWrite, after.LastWrite = 7, 7
	if e, ok := Of(before, after, time.Now()); !ok || e.Written {
		t.Errorf("got %+v, %t, want an event that says that nothing was written", e, ok)
	}
}

func TestAHubCutsOffWhoDoesNotListen(t *testing.T) {
	t.Parallel()
	var h Hub
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	slow, quick := h.Subscribe(t.Context()), h.Subscribe(ctx)
	n := 0
	for range 2 * buffer {
		h.Publish(Event{})
		<-quick
	}
	for range slow {
		n++
	}
	if n != buffer {
		t.Errorf("%d events before the end, want %d", n, buffer)
	}
	cancel()
	if _, more := <-quick; more {
		t.Error("an event after the subscription ended")
	}
	h.Publish(Event{})
}
