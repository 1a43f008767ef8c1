// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// archived opens an archive for the bench.
func (b *bench) archived() *memory.Archive {
	b.archive = memory.NewArchive(clock.System{}, 14*24*time.Hour)
	return b.archive
}

// objects returns the messages of the archive, object by object.
func (b *bench) objects() (all [][]queue.Message) {
	b.Helper()
	err := archive.Range(b.Context(), b.archive, time.Time{}, time.Now().Add(time.Hour), "",
		func(o archive.Object) error {
			object, err := b.archive.Get(b.Context(), o.Name)
			if err != nil {
				return err
			}
			msgs, err := archive.Decode(object)
			all = append(all, msgs)
			parts, bad := o.Name.Parts()
			if bad != nil || parts.Messages != len(msgs) || parts.Sink != "search" || parts.Lane != "live" {
				b.Errorf("%s holds %d messages: %v", o.Name, len(msgs), bad)
			}
			return err
		})
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// archivedBodies returns the bodies in the only object of the archive.
func (b *bench) archivedBodies() (bodies []string) {
	b.Helper()
	all := b.objects()
	if len(all) != 1 {
		b.Fatalf("%d objects in the archive, want one for the batch", len(all))
	}
	for _, m := range all[0] {
		bodies = append(bodies, m.Body)
	}
	slices.Sort(bodies)
	return bodies
}

func TestTheArchiveHasEveryMessageOnceByteForByte(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.send(put("a", 7))
		b.poll()
		b.commit(b.EventOf(put("a", 7)))
		time.Sleep(time.Minute)
		b.poll()
		b.archived()
		want := []string{"not even JSON", put("a", 6), put("a", 7), put("b", 1)}
		b.send(want...)
		copied := queue.Outgoing{Body: put("b", 2), Attributes: map[string]queue.Attribute{
			queue.AttrFirstSent: queue.Text("1000"),
		}}
		b.live.Send(b.Context(), []queue.Outgoing{copied})
		b.poll()
		if got := b.archivedBodies(); !slices.Equal(got, want) {
			b.Errorf("got %q, want all messages that were sent, also stale and broken ones, but no copy from lull: %q", got, want)
		}
		if sent := b.objects()[0][0].Sent; !sent.Equal(time.Now().Truncate(time.Millisecond)) {
			b.Errorf("sent at %s, want the time at which the queue got the message", sent)
		}
		b.Noted(journal.Archived, 1)
		time.Sleep(time.Hour)
		b.poll()
		if n := len(b.objects()); n != 1 {
			b.Errorf("%d objects after a redelivery, want one", n)
		}
	})
}

// silent is a bucket that never answers a Put.
type silent struct{}

func (silent) Decide(ctx context.Context, _ *fault.Invocation, op fault.Op) fault.Verdict {
	if op.Call != "PutArchive" {
		return fault.OK
	}
	<-ctx.Done()
	return fault.FailBefore
}

// If the archive fails, the answer and the flight are the same as without an archive.
func TestALostArchiveIsCountedAndLosesNothingElse(t *testing.T) {
	usecasetest.Table(t, stage(nil).play, map[string]fault.Injector{
		"fails": usecasetest.Always("PutArchive", fault.FailBefore),
		"hangs": silent{},
	}, func(b *bench, broken fault.Injector) {
		b.archived()
		b.inject = broken
		b.send(put("a", 1), "not even JSON")
		began := time.Now()
		b.keeps(1, "the good message is held, the broken one is a dead letter")
		b.Noted(journal.Launched, 1)
		b.Noted(journal.DeadLettered, 1)
		b.Noted(journal.ArchiveLost, 1)
		if took := time.Since(began); took >= b.Config.Receive.Timeout {
			b.Errorf("the batch took %s, want less than the function's time-out", took)
		}
		if n := b.Notes.Of(journal.ArchiveLost)[0]; n.Count != 2 || n.Detail == "" {
			b.Errorf("notes %+v, want both messages counted, with the reason", n)
		}
	})
}

// A message is received for the first time only once, so it is archived whatever happens to its
// batch.
func TestTheArchiveHasWhatIsSentAwayOrFails(t *testing.T) {
	usecasetest.Table(t, stage(nil).play, map[string]func(b *bench){
		"away": func(b *bench) {
			b.Write(shardtest.Put(shard.Row{Doc: shard.HealthRow("search"), OpenUntil: now().Add(time.Hour), Level: 7}))
		},
		"panic": func(b *bench) {
			b.inject = decide(func(op fault.Op) fault.Verdict {
				if op.Transition == shard.ADMIT {
					panic("a bug")
				}
				return fault.OK
			})
		},
		"no table": func(b *bench) {
			b.inject = usecasetest.Away(fault.Table, fault.FailBefore)
		},
	}, func(b *bench, prepare func(b *bench)) {
		b.archived()
		prepare(b)
		b.send(put("a", 1))
		func() {
			defer func() { _ = recover() }()
			b.keeps(1, "the message is not done")
		}()
		if got := b.archivedBodies(); !slices.Equal(got, []string{put("a", 1)}) {
			b.Errorf("got %q", got)
		}
	})
}
