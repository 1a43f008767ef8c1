// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
)

// sentBy is a kind of sender, and says whether this sender sends in lull's name.
type sentBy struct {
	sender string
	ours   bool
}

var everySender = map[string]sentBy{
	"receive": {"AROARECEIVE:lull-search-receive", true}, "operator": {"AROAOPERATOR:ann", true},
	"publisher": {"AROAPUBLISHER:ann", false}, "service": {"AIDASERVICE", false}, "none": {"", false},
}

// by makes the bench receive all messages from that sender.
func (b *bench) by(s sentBy) {
	b.senders, b.sender = queue.Senders{"AROARECEIVE", "AROAOPERATOR"}, s.sender
}

// saying returns all attributes that only lull may set.
func saying() map[string]queue.Attribute {
	return map[string]queue.Attribute{
		queue.AttrSource: queue.Text("native"), queue.AttrGroup: queue.Text("tenant"),
		queue.AttrFirstSent: queue.FirstSent(time.Now().Add(-time.Minute)), queue.AttrEvent: queue.Text("0"),
		queue.AttrPart: queue.Text("7"),
		queue.AttrLine: queue.Text(queue.Line{Number: 1, Written: time.Unix(9, 0), Object: "s3://b/k"}.Text()),
	}
}

// Attributes that another sender sets in lull's name are neither in the flight nor in a copy from
// lull. A copy has lull's own role as its sender, so receive would believe them.
func TestAFlightAndACopyHoldNothingThatAStrangerSaysInLullsName(t *testing.T) {
	t.Parallel()
	usecasetest.Table(t, stage(nil).play, everySender, func(b *bench, by sentBy) {
		b.by(by)
		said := saying()
		soon, later := time.Now().Add(10*time.Minute), time.Now().Add(time.Hour)
		b.live.Send(b.Context(), []queue.Outgoing{
			{Body: put("now", 1), Attributes: said},
			{Body: notBefore(put("soon", 1), soon), Attributes: said},
			{Body: notBefore(put("later", 1), later), Attributes: said},
			{Body: "broken", Attributes: said},
		})
		m := queue.Message{ID: "m", Body: put("back", 1), Sent: time.Now(), Attributes: said}
		b.SendLetter(b.live, m, b.EventOf(put("back", 1)), deadletter.RejectedBySink)
		b.poll()
		want := slices.Sorted(maps.Keys(said))
		if !by.ours {
			want = []string{queue.AttrFirstSent, queue.AttrGroup, queue.AttrSource}
			b.Noted(journal.Untrusted, 5)
		}
		found := map[string]map[string]queue.Attribute{}
		for _, f := range b.manifests() {
			for _, r := range f.Records {
				found["flight: "+r.Message.Body] = r.Message.Attributes
			}
		}
		items, _, err := b.schedule.Due(b.Context(), later, "", 10)
		if err != nil {
			b.Fatal(err)
		}
		for _, it := range items {
			found["item: "+it.Body] = it.Attributes
		}
		for _, l := range b.TakeLetters(b.dead) {
			found["dead letter: "+l.Body] = l.Attributes
		}
		time.Sleep(time.Until(soon))
		copies, err := b.live.Receive(b.Context(), 10, 0)
		for _, c := range copies {
			if c.Body == notBefore(put("soon", 1), soon) {
				found["copy: "+c.Body] = c.Attributes
			}
		}
		if err != nil || len(found) != 5 {
			b.Fatalf("found messages %v (%v), want five", slices.Sorted(maps.Keys(found)), err)
		}
		for where, attributes := range found {
			if got := slices.Sorted(maps.Keys(attributes)); !slices.Equal(got, want) {
				b.Errorf("%s has %v, want %v", where, got, want)
			}
		}
	})
}

// A copy from lull is not archived, because its original is. An event from another sender is
// archived, even if it looks like a copy.
func TestAStrangerCannotKeepItsEventOutOfTheArchive(t *testing.T) {
	t.Parallel()
	usecasetest.Table(t, stage(nil).play, everySender, func(b *bench, by sentBy) {
		b.by(by)
		b.archived()
		b.send(put("a", 1))
		b.sendWith(queue.AttrFirstSent, "1000", put("b", 1))
		b.sendWith(queue.AttrLetter, "{}", put("c", 1))
		b.poll()
		want := []string{put("a", 1)}
		if !by.ours {
			want = append(want, put("b", 1), put("c", 1))
		}
		if got := b.archivedBodies(); !slices.Equal(got, want) {
			b.Errorf("the archive has %q, want %q", got, want)
		}
	})
}
