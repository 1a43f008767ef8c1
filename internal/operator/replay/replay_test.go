// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a replay of an archive in memory.
type bench struct {
	*usecasetest.Rig
	Service
	store *memory.Archive
	order Order
	sent  []queue.Outgoing
	parts []int // the parts of what was sent
	fails int   // number of sends that fail, from the first
}

func play(t *testing.T, story func(b *bench)) {
	t.Helper()
	usecasetest.Story(t, func(t *testing.T) {
		b := &bench{Rig: usecasetest.Open(t, nil)}
		b.store = memory.NewArchive(clock.System{}, 90*24*time.Hour)
		run := shard.Run(ulid.MustNew(ulid.Now(), rand.Reader))
		b.order = Order{From: time.Now().Add(-60 * 24 * time.Hour), To: time.Now().Add(time.Hour), Run: run}
		b.Service = Service{
			Store: b.store, Shards: b.Rig.Shards, Config: &b.Rig.Config, Clock: clock.System{},
			Sources: b.Rig.Sources,
			Send: func(_ context.Context, part int, sink string, out []queue.Outgoing) []error {
				if b.fails > 0 {
					b.fails--
					return queue.FailAll(len(out), errors.New("the queue is down"))
				}
				for _, o := range out {
					if why := o.Refusal(); why != nil || sink != "search" {
						t.Errorf("sent %+v to %s: %v", o, sink, why)
					}
				}
				b.sent, b.parts = append(b.sent, out...), append(b.parts, slices.Repeat([]int{part}, len(out))...)
				return nil
			},
		}
		story(b)
	})
}

// archived stores an object in the archive. It has a message for each body, and all were sent at
// the same time.
func (b *bench) archived(sent time.Time, bodies ...string) archive.Name {
	b.Helper()
	var msgs []queue.Message
	for i, body := range bodies {
		msgs = append(msgs, queue.Message{ID: fmt.Sprint("m", i), Sent: sent, Body: body})
	}
	object := usecasetest.Must(archive.Encode(msgs))(b)
	return b.object(object, len(msgs))
}

func (b *bench) object(object []byte, n int) archive.Name {
	b.Helper()
	name := archive.Parts{
		Received: time.Now(), Lane: flight.Live, Sink: "search", Messages: n, ID: "ID",
	}.Name()
	usecasetest.OK(b, b.store.Put(b.Context(), name, object))
	time.Sleep(time.Second)
	return name
}

// all runs the order to its end and adds up its steps.
func (b *bench) all(most int) (sum Step) {
	b.Helper()
	sum.Events = map[Outcome]int{}
	for after, n := "", 0; ; n++ {
		step, err := b.Step(b.Context(), b.order, after, most)
		if err != nil || n > 1000 {
			b.Fatalf("step %d: %v", n, err)
		}
		sum.Messages += step.Messages
		sum.Sent += step.Sent
		for o, n := range step.Events {
			sum.Events[o] += n
		}
		sum.Faults = append(sum.Faults, step.Faults...)
		if after = step.Next; after == "" {
			return sum
		}
	}
}

func (b *bench) outcomes(want map[Outcome]int) {
	b.Helper()
	if got := b.all(MaxStep); !maps.Equal(got.Events, want) {
		b.Errorf("got %v, want %v (%v)", got.Events, want, got.Faults)
	}
}

// inRun returns a copy of a key that has a resync run.
func inRun(t *testing.T, k shard.OrderKey, run string) shard.OrderKey {
	t.Helper()
	p := usecasetest.Must(k.Parts())(t)
	p.Run = usecasetest.Must(shard.ParseRun(run))(t)
	return usecasetest.Must(shard.NewOrderKey(p))(t)
}

const (
	before = "00AMWAAAAAJ8Q5M3N7P9R0S2T4" // a run before the replay's
	body2  = `{"type":"doc.changed","subject":"a","sequence":"2","data":{"title":"v2"}}`
	other2 = `{"type":"doc.changed","subject":"a","sequence":"2","data":{"title":"another v2"}}`
)

func TestAnEventIsSentUnlessItsRowKnowsSomethingNewer(t *testing.T) {
	for name, tt := range map[string]struct {
		row  func(b *bench, r *shard.Row, k shard.OrderKey)
		age  time.Duration
		want Outcome
	}{
		"no row":                      {want: Sent},
		"it was committed":            {row: func(_ *bench, r *shard.Row, k shard.OrderKey) { r.Committed = k }, want: Sent},
		"an older version":            {row: func(b *bench, r *shard.Row, _ shard.OrderKey) { r.Committed = b.EventOf(usecasetest.Put("a", 1)).Key }, want: Sent},
		"a later version":             {row: func(b *bench, r *shard.Row, _ shard.OrderKey) { r.Committed = b.EventOf(usecasetest.Put("a", 3)).Key }, want: Newer},
		"a later one is only pending": {row: func(b *bench, r *shard.Row, _ shard.OrderKey) { r.Pending = b.EventOf(usecasetest.Put("a", 3)).Key }, want: Sent},
		// An earlier replay sent the event.
		"it was committed in an earlier run": {row: func(b *bench, r *shard.Row, k shard.OrderKey) { r.Committed = inRun(b.T, k, before) }, want: Sent},
		// A resync wrote the version again with the present content of its page. If the replay sent
		// the old content in a later run, the old content would win.
		"its version with the content of a resync": {
			row: func(b *bench, r *shard.Row, _ shard.OrderKey) {
				r.Committed = inRun(b.T, b.EventOf(other2).Key, before)
			},
			want: Newer,
		},
		"its version with the content of a resync, pending": {
			row: func(b *bench, r *shard.Row, k shard.OrderKey) {
				r.Committed, r.Pending = k, inRun(b.T, b.EventOf(other2).Key, before)
			},
			want: Newer,
		},
		"its version with the content of a resync, claimed": {
			row: func(b *bench, r *shard.Row, k shard.OrderKey) {
				r.Committed, r.Claimed = k, inRun(b.T, b.EventOf(other2).Key, before)
			},
			want: Newer,
		},
		"a reset withdrew it": {row: func(_ *bench, r *shard.Row, k shard.OrderKey) {
			r.TakenBack = shard.KeySetOf(k)
		}, want: TakenBack},
		"it is dead":                             {row: func(_ *bench, r *shard.Row, k shard.OrderKey) { r.Dead = k }, want: Dead},
		"too old, and no commit":                 {age: 30 * 24 * time.Hour, want: TooOld},
		"too old, but committed":                 {age: 30 * 24 * time.Hour, row: func(_ *bench, r *shard.Row, k shard.OrderKey) { r.Committed = k }, want: Sent},
		"its version with other content is dead": {row: func(b *bench, r *shard.Row, _ shard.OrderKey) { r.Dead = b.EventOf(other2).Key }, want: Sent},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(b *bench) {
				sent := time.Now().Add(-tt.age).Truncate(time.Millisecond)
				b.archived(sent, body2)
				if tt.row != nil {
					b.Change(usecasetest.Doc("a"), func(r *shard.Row) { tt.row(b, r, b.EventOf(body2).Key) })
				}
				b.outcomes(map[Outcome]int{tt.want: 1})
				if tt.want != Sent {
					if len(b.sent) > 0 {
						t.Errorf("sent %+v", b.sent)
					}
					return
				}
				if len(b.sent) != 1 {
					t.Fatalf("sent %d messages, want one", len(b.sent))
				}
				m := queue.Message{Body: b.sent[0].Body, Attributes: b.sent[0].Attributes, Sent: time.Now()}
				e := b.Event(m)
				p, _ := e.Key.Parts()
				if !e.Resync || p.Run != b.order.Run || !e.Key.SameEvent(b.EventOf(body2).Key) {
					t.Errorf("sent %s, want the event in the run", e.Key)
				}
				if !m.FirstSent().Equal(sent) {
					t.Errorf("first sent at %s, want %s: a tombstone may be gone", m.FirstSent(), sent)
				}
			})
		})
	}
}

// A replay in steps of any size sends each message once. A failed step may be repeated.
func TestAReplayGoesStepByStep(t *testing.T) {
	for _, most := range []int{1, 2, 3, MaxStep, 1 << 30} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			play(t, func(b *bench) {
				var want []string
				for o := range 3 {
					var bodies []string
					for i := range 5 {
						bodies = append(bodies, usecasetest.Put(fmt.Sprintf("%d-%d", o, i), 1))
						want = append(want, fmt.Sprintf("content#%d-%d", o, i))
					}
					b.archived(time.Now(), bodies...)
				}
				b.fails = 1
				if step, err := b.Step(b.Context(), b.order, "", most); err == nil || step.Next != "" {
					t.Errorf("got %+v, %v, want to repeat the step", step, err)
				}
				sum := b.all(most)
				var got []string
				for _, o := range b.sent {
					got = append(got, string(b.Event(queue.Message{Body: o.Body, Attributes: o.Attributes}).Doc))
				}
				if !slices.Equal(got, want) || sum.Messages != 15 || sum.Sent != 15 {
					t.Errorf("got %q (%+v), want %q", got, sum, want)
				}
			})
		})
	}
}

func TestADryRunSendsNothing(t *testing.T) {
	play(t, func(b *bench) {
		b.archived(time.Now(), usecasetest.Put("a", 1))
		b.order.DryRun = true
		b.outcomes(map[Outcome]int{Sent: 1})
		if len(b.sent) > 0 {
			t.Errorf("sent %+v", b.sent)
		}
	})
}

func TestWhatCannotBeReplayedIsNamedAndTheRestGoesOn(t *testing.T) {
	play(t, func(b *bench) {
		large := strings.Repeat("x", queue.MaxBytes-100)
		first := b.archived(time.Now(), usecasetest.Put("a", 1), "not even JSON",
			`{"type":"doc.changed","subject":"b","sequence":"1","data":{"title":"`+large+`"}}`)
		broken := b.object([]byte("not gzip"), 7)
		oddName := archive.Name("2026/odd:name")
		usecasetest.OK(t, b.store.Put(b.Context(), oddName, nil))
		gone := archive.Parts{Received: time.Now(), Lane: flight.Live, Sink: "gone", Messages: 1, ID: "ID"}.Name()
		object, _ := archive.Encode([]queue.Message{{ID: "m", Body: usecasetest.Put("a", 1)}})
		usecasetest.OK(t, b.store.Put(b.Context(), gone, object))
		time.Sleep(time.Second)
		b.archived(time.Now(), usecasetest.Put("c", 1))
		b.order.To = time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
		sum := b.all(MaxStep)
		if want := map[Outcome]int{Sent: 2, Invalid: 1, Refused: 2}; !maps.Equal(sum.Events, want) {
			t.Errorf("got %v, want %v", sum.Events, want)
		}
		var named []string
		for _, f := range sum.Faults {
			if f.Why == "" {
				t.Errorf("%+v has no reason", f)
			}
			named = append(named, fmt.Sprintf("%s %s %s", f.Object, f.Message, f.Outcome))
		}
		want := []string{
			fmt.Sprintf("%s m1 invalid", first), fmt.Sprintf("%s m2 refused", first),
			fmt.Sprintf("%s  unreadable", broken), fmt.Sprintf("%s  refused", gone), fmt.Sprintf("%s  unreadable", oddName),
		}
		slices.Sort(want)
		slices.Sort(named)
		if !slices.Equal(named, want) {
			t.Errorf("got %q, want %q", named, want)
		}
	})
}

// changed is a record of S3's notification.
func changed(id string, sequencer int) string {
	return fmt.Sprintf(`{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"eu-west-1",`+
		`"eventTime":"2000-01-01T00:00:00.000Z","eventName":"ObjectCreated:Put","s3":{"s3SchemaVersion":"1.0",`+
		`"bucket":{"name":"docs","arn":"arn:aws:s3:::docs"},"object":{"key":%q,"size":1,"eTag":"e","sequencer":"%016X"}}}`,
		id, sequencer)
}

// If the row has a newer version of one event, the other events of its message are still sent.
func TestOfAMessageOnlyTheEventsThatAreWantedGo(t *testing.T) {
	play(t, func(b *bench) {
		c := b.Rig.Config
		c.DefaultSource, c.Sources = "", map[string]config.Source{"files": {Kind: "s3"}}
		c.Payload.Allow = []config.BucketPrefix{{Bucket: "docs"}}
		c.Complete()
		set := usecasetest.Must(source.New(&c))(t)
		b.Service.Config, b.Service.Sources = &c, set
		b.archived(time.Now(), `{"Records":[`+changed("a", 1)+","+changed("b", 1)+","+changed("c", 1)+"]}")
		newer := set.Decode(queue.Message{Body: `{"Records":[` + changed("b", 2) + "]}"})[0].Event
		docs := func() (got []string) {
			for _, o := range b.sent {
				m := queue.Message{Body: o.Body, Attributes: o.Attributes, Sent: time.Now()}
				for _, r := range set.Decode(m) {
					if r.Skip == "" {
						got = append(got, string(r.Event.Doc))
					}
				}
			}
			return got
		}
		b.Change(newer.Doc, func(r *shard.Row) { r.Committed = newer.Key })
		b.outcomes(map[Outcome]int{Sent: 2, Newer: 1})
		if got, want := docs(), []string{"content#docs/a", "content#docs/c"}; !slices.Equal(got, want) || len(b.sent) != 2 {
			t.Errorf("got %q in %d messages, want %q in one each", got, len(b.sent), want)
		}
		b.Change(newer.Doc, func(r *shard.Row) { r.Committed = "" })
		b.sent = nil
		b.outcomes(map[Outcome]int{Sent: 3})
		if got, want := docs(), []string{"content#docs/a", "content#docs/b", "content#docs/c"}; !slices.Equal(got, want) || len(b.sent) != 1 {
			t.Errorf("got %q in %d messages, want %q in one", got, len(b.sent), want)
		}
	})
}

// The archive is older than the last growth, so some of its documents belong to another part now.
// The row there decides: an older content as one of a later run would win.
func TestADocumentThatMovedIsSentToItsPartAndJudgedByTheRowThere(t *testing.T) {
	play(t, func(b *bench) {
		c := b.Rig.Config
		c.DefaultSource, c.Sources = "", map[string]config.Source{"files": {Kind: "s3"}}
		c.Payload.Allow = []config.BucketPrefix{{Bucket: "docs"}}
		c.Stack, c.Parts = "lull-1", config.Parts{Of: 2, This: 1}
		c.Complete()
		set := usecasetest.Must(source.New(&c))(t)
		b.Service.Config, b.Service.Sources = &c, set
		there := memory.NewShards()
		b.Other = func(int) shard.Store { return there }
		ids := map[int][]string{}
		for i := 0; len(ids[1]) < 3 || len(ids[2]) < 5; i++ {
			id := fmt.Sprint("d", i)
			part := event.Part("content", "docs/"+id, 2)
			ids[part] = append(ids[part], id)
		}
		ours, moved := ids[1], ids[2]
		message := func(records ...string) string { return `{"Records":[` + strings.Join(records, ",") + "]}" }
		b.archived(time.Now(), message(changed(ours[0], 1)), message(changed(moved[0], 1), changed(moved[1], 1)),
			message(changed(moved[2], 1)),                       // its row has a newer version
			message(changed(moved[2], 1), changed(moved[3], 1)), // the first row has a newer version
			message(changed(ours[1], 1), changed(moved[4], 1)))  // of two parts
		newer := set.Decode(queue.Message{Body: message(changed(moved[2], 2))})[0].Event
		usecasetest.Must(there.Write(b.Context(), shardtest.Put(shard.Row{
			Doc: newer.Doc, VersionClass: newer.Class, Committed: newer.Key, CommittedOp: shard.Put,
		})))(t)
		b.outcomes(map[Outcome]int{Sent: 4, Newer: 2, Refused: 2})
		got := map[int][]string{}
		for i, o := range b.sent {
			_, copied := o.Attributes[queue.AttrEvent]
			for _, r := range set.Decode(queue.Message{Body: o.Body, Attributes: o.Attributes, Sent: time.Now()}) {
				if r.Skip == "" {
					got[b.parts[i]] = append(got[b.parts[i]], strings.TrimPrefix(r.Event.Doc.ID(), "docs/"))
				}
			}
			if copied && b.parts[i] == 2 {
				t.Errorf("a copy for one event goes to part 2, which does not believe it: %+v", o)
			}
		}
		if !slices.Equal(got[1], ours[:2]) || !slices.Equal(got[2], moved[:2]) {
			t.Errorf("sent %v, want %v to part 1 and %v to part 2", got, ours[:2], moved[:2])
		}
		b.Other = func(int) shard.Store { return nil } // as in a lull dev
		b.outcomes(map[Outcome]int{Sent: 2, Refused: 6})
	})
}

func TestAnOrderChoosesByCollectionAndSource(t *testing.T) {
	play(t, func(b *bench) {
		b.archived(time.Now(), usecasetest.Put("a", 1),
			`{"type":"doc.changed","subject":"a","sequence":"1","collection":"news","data":{}}`)
		for _, tt := range []struct {
			collection shard.Collection
			source     string
			want       map[Outcome]int
		}{
			{"news", "", map[Outcome]int{Sent: 1, Other: 1}},
			{"none", "", map[Outcome]int{Other: 2}},
			{"", "native", map[Outcome]int{Sent: 2}},
			{"", "else", map[Outcome]int{Other: 2}},
		} {
			b.order.Collection, b.order.Source = tt.collection, tt.source
			b.outcomes(tt.want)
		}
	})
}

// Every kind of source writes messages that can be replayed as the same events.
func TestEveryKindCanBeReplayed(t *testing.T) {
	for _, name := range source.Kinds() {
		kind, _ := source.Lookup(name)
		if kind.Example.Write == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			play(t, func(b *bench) {
				c := b.Rig.Config
				c.DefaultSource = "example"
				c.Sources = map[string]config.Source{"example": kind.ExampleSettings()}
				c.Payload.Allow = []config.BucketPrefix{{Bucket: cmp.Or(kind.Example.Change.Bucket, "none")}}
				c.Complete()
				set := usecasetest.Must(source.New(&c))(t)
				b.Service.Config, b.Service.Sources = &c, set
				e, err := set.Encode("example", source.Change{
					Collection: c.DefaultCollection, ID: "a", Op: event.Put, Version: kind.Example.Change.Version,
					Time: time.Now(), Data: `{"title":"x"}`, Bucket: kind.Example.Change.Bucket,
				})
				if err != nil {
					t.Fatal(err)
				}
				m := queue.Message{ID: "m", Sent: time.Now(), Body: e.Body, Attributes: e.Attributes}
				object := usecasetest.Must(archive.Encode([]queue.Message{m}))(t)
				b.object(object, 1)
				b.outcomes(map[Outcome]int{Sent: 1})
			})
		})
	}
}
