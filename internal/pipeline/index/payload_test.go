// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

func touched(id string, version int) string {
	return fmt.Sprintf(`{"type":"doc.touched","subject":%q,"sequence":"%d","dataref":"s3://open/%s-%d"}`, id, version,
		id, version)
}

func openBucket(c *config.Config) { c.Payload.Allow = []config.BucketPrefix{{Bucket: "open"}} }

// objects sets the bucket behind the loader that the functions use.
func (b *bench) objects(get func(key string) ([]byte, error)) {
	b.payloads = payload.New(func(_ context.Context, bucket, key string) ([]byte, error) {
		if bucket != "open" {
			b.Errorf("asked for bucket %s", bucket)
		}
		return get(key)
	}, nil, 1<<20)
}

// The content behind a reference may change until it is written, so no other flight may claim
// between load and write.
func TestAPayloadIsLoadedUnderItsLease(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		loaded := map[string]int{}
		b.objects(func(key string) ([]byte, error) {
			loaded[key]++
			if r := b.Row(doc("a")); r.Owner == "" {
				b.Errorf("row %+v, want a lease while the payload is loaded", r)
			}
			return []byte(`{"title":"from ` + key + `"}`), nil
		})
		s := b.hold(touched("a", 1), touched("a", 2))
		b.fly(s, 1)
		b.shows("a", `{"title":"from a-2"}`)
		if loaded["a-1"] != 0 || loaded["a-2"] != 1 {
			b.Errorf("loaded %v, want the newest version's payload once and no other", loaded)
		}
		b.inQueue(0)
	})
}

// shows checks the content of a document in the sink.
func (b *bench) shows(id, want string) {
	b.Helper()
	if got, _, err := b.sink.Get(b.Context(), doc(id)); err != nil || string(got.Document) != want {
		b.Errorf("%s: document %s (%v), want %s", id, got.Document, err, want)
	}
}

// This is the story load-before-the-claim of the model. Two executions run one flight. The first
// execution's clock is so far ahead that it believes that the lease of the second execution has
// expired. The object changes in between.
func TestAnOlderContentOfAReferenceNeverFollowsANewerOne(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		content := `{"title":"old"}`
		b.objects(func(string) ([]byte, error) { return []byte(content), nil })
		s := b.hold(touched("a", 1))
		time.Sleep(time.Until(s.Wake()))
		other := b.invocation() // gives no answer: the sink applies its request, and then the invocation is killed
		other.inject = usecasetest.Away(fault.Search, fault.CrashAfter)
		between := false
		b.clock = clock.Skewed{Clock: clock.System{}, By: b.Config.Lease("search") + time.Second}
		b.inject = at("CLAIM", func() {
			if between {
				return
			}
			between = true
			content = `{"title":"new"}`
			if _, err := b.run(other, fault.NewInvocation(other.inject, "index", 2), s); err != nil {
				b.Error(err)
			}
		})
		other.clock = clock.System{}
		if _, _, err := b.invoke(s); err != nil {
			b.Fatal(err)
		}
		if !between {
			b.Error("the first execution claimed nothing, want a claim")
		}
		b.shows("a", `{"title":"new"}`)
	})
}

// If an object was removed, a delete is on its way. So the put before the delete is not a dead
// letter and raises no alarm.
func TestARemovedPayloadWaitsForItsDelete(t *testing.T) {
	gone := &event.Invalid{Reason: deadletter.Payload, Field: "dataref", Problem: "no such object", Missing: true}
	type row struct {
		delete  time.Duration // when the delete is sent, 0 for never
		letters int
		holds   string
	}
	usecasetest.Table(t, stage{cfg: openBucket}.play, map[string]row{
		"the delete comes":          {time.Minute, 0, ""},
		"the delete never comes":    {0, 1, "1"},
		"the delete comes too late": {time.Hour, 1, ""},
	}, func(b *bench, c row) {
		b.fly(b.hold(put("a", 1)), 1)
		b.objects(func(string) ([]byte, error) { return nil, gone })
		began := time.Now()
		flights := []flight.State{b.hold(touched("a", 2))}
		for deleted := c.delete == 0; len(flights) > 0 || !deleted; {
			if !deleted && (len(flights) == 0 || flights[0].Wake().After(began.Add(c.delete))) {
				time.Sleep(time.Until(began.Add(c.delete)))
				deleted = true
				flights = append(flights, b.hold(`{"type":"doc.deleted","subject":"a","sequence":"3"}`))
			}
			slices.SortFunc(flights, func(x, y flight.State) int { return x.Wake().Compare(y.Wake()) })
			legs := len(b.launched.list)
			flights[0] = b.turn(flights[0])
			flights = append(flights, b.launched.list[legs:]...) // the execution may end before the flight does
			flights = slices.DeleteFunc(flights, func(s flight.State) bool { return s.Done })
		}
		l := b.TakeLetters(b.dead)
		if len(l) != c.letters {
			b.Errorf("%d dead letters, want %d", len(l), c.letters)
		}
		if waited := b.Config.Payload.MissingWait; len(l) > 0 && l[0].Died.Sub(began) < waited {
			b.Errorf("the message became a dead letter after %s, want %s", l[0].Died.Sub(began), waited)
		}
		if n := len(b.Notes.Of(journal.Claimed)); n > 20 {
			b.Errorf("%d claims, want fewer: each try costs two writes of the row", n)
		}
		if r := b.Row(doc("a")); r.Refusals != 0 {
			b.Errorf("row %+v, want no refusal counted", r)
		}
		b.holds("a", c.holds)
		b.inQueue(0)
	})
}

func TestADeleteLoadsNothing(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		b.objects(func(string) ([]byte, error) {
			b.Error("the payload of a delete was loaded")
			return nil, nil
		})
		b.fly(b.hold(`{"type":"doc.deleted","subject":"a","sequence":"1","dataref":"s3://open/a"}`), 1)
		b.Noted(journal.Committed, 1)
	})
}

func TestAPayloadThatCannotBeLoadedNowIsWaitedFor(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		away := true
		b.objects(func(string) ([]byte, error) {
			if away {
				return nil, errors.New("slow down")
			}
			return []byte(`{}`), nil
		})
		s := b.turn(b.hold(touched("a", 1), put("b", 1)))
		b.holds("b", "1") // the payload does not delay other documents
		if r := b.Row(doc("a")); r.Owner != "" || r.Refusals != 0 || s.Done {
			b.Errorf("row %+v, done %v: want no lease and no refusal, and the flight to wait", r, s.Done)
		}
		away = false
		b.delivers(s, 1, "a", "1")
		b.inQueue(0)
	})
}

// If a document can never be built, its event becomes a dead letter without a request to the sink.
// The newest good version is then written.
func TestWhatCannotBecomeADocumentIsADeadLetter(t *testing.T) {
	gone := &event.Invalid{Reason: deadletter.Payload, Field: "dataref", Problem: "no such object"}
	type row struct {
		spoil  func(b *bench)
		reason deadletter.Reason
		detail string
	}
	usecasetest.Table(t, stage{cfg: openBucket}.play, map[string]row{
		"no such object": {func(b *bench) {
			b.objects(func(string) ([]byte, error) { return nil, gone })
		}, deadletter.Payload, "no such object"},
		"no document in it": {func(b *bench) {
			b.objects(func(string) ([]byte, error) { return []byte(`[1,2]`), nil })
		}, deadletter.Payload, "dataref: data is an array"},
		"no loader": {func(*bench) {}, deadletter.Payload, "not configured"},
		"the place of the payload is forbidden now": {func(b *bench) {
			cfg := b.Config
			cfg.Payload.Allow = nil
			b.deploy(&cfg)
		}, deadletter.Contract, "were the source's settings changed?"},
		"the event belongs to another collection now": {func(b *bench) {
			cfg := b.Config
			cfg.DefaultCollection = "elsewhere"
			cfg.Sources = map[string]config.Source{"native": {Kind: "native", Collection: "elsewhere"}}
			b.deploy(&cfg)
		}, deadletter.Contract, "were the source's settings changed?"},
	}, func(b *bench, c row) {
		s := b.hold(touched("a", 2))
		c.spoil(b)
		b.fly(s, 1)
		l := b.TakeLetters(b.dead)
		if len(l) != 1 || l[0].Reason != c.reason || !strings.Contains(l[0].Detail, c.detail) ||
			l[0].Body != touched("a", 2) || l[0].Key != b.keyOf(touched("a", 2)) {
			b.Errorf("dead letters %+v, want one: %s, %s", l, c.reason, c.detail)
		}
		b.requests(0, "no request for an event that is not a document")
		if r := b.Row(doc("a")); r.Pending != "" || r.Owner != "" || r.Dead == "" {
			b.Errorf("row %+v, want the version dead, and nothing pending or leased", r)
		}
		b.Noted(journal.DeadLettered, 1)
		b.inQueue(0)
	})
}

// deploy makes index decode with other settings than receive did.
func (b *bench) deploy(cfg *config.Config) {
	b.Helper()
	set, err := source.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Sources = set
}

// keyOf returns the key of an event, by the settings of the bench.
func (b *bench) keyOf(body string) shard.OrderKey {
	b.Helper()
	set, err := source.New(&b.Config)
	if err != nil {
		b.Fatal(err)
	}
	old := b.Sources
	defer func() { b.Sources = old }()
	b.Sources = set
	return b.EventOf(body).Key
}

// A message whose body is a pointer is decoded again in every turn. While the body cannot be
// loaded, the message waits.
func TestABodyThatCannotBeLoadedNowIsWaitedFor(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		away := false
		b.Sources = b.Sources.WithLoader(func(context.Context, string, string) ([]byte, error) {
			if away {
				return nil, errors.New("slow down")
			}
			return []byte(put("a", 1)), nil
		})
		s := b.hold(`["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"open","s3Key":"large"}]`)
		away = true
		s = b.turn(s)
		b.Noted(journal.Claimed, 0)
		b.Noted(journal.DeadLettered, 0)
		away = false
		b.delivers(s, 1, "a", "1")
	})
}

// sinkMargin is the time that index keeps for COMMIT and DeleteMessage. maxParallel is the number
// of payloads that index loads at the same time.
const (
	sinkMargin  = 2 * time.Second
	maxParallel = 32
)

// Slow payloads use all the time of a turn. They still do not keep other documents from being
// written.
func TestSlowPayloadsDoNotStarveOtherDocuments(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		b.payloads = payload.New(func(ctx context.Context, _, _ string) ([]byte, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(3 * time.Second):
				return nil, errors.New("time-out")
			}
		}, nil, 1<<20)
		s := b.hold(append(many(150, touched, "slow"), put("plain", 1))...)
		for range 6 {
			begin := s.Wake()
			if s = b.turn(s); time.Since(begin) > b.Config.Index.Timeout-sinkMargin {
				b.Errorf("a turn took %s", time.Since(begin))
			}
		}
		b.holds("plain", "1")
		// Documents for which a turn has no time are not claimed.
		if n := len(b.Notes.Of(journal.Claimed)); n > 6*2*maxParallel {
			b.Errorf("%d claims in 6 turns, want at most %d in each", n, 2*maxParallel)
		}
		b.inQueue(150)
	})
}

// fullest is a sink that records the most bytes that one request contained.
type fullest struct {
	sink.Sink
	most *int
}

func (f fullest) Write(ctx context.Context, ops []sink.Op) []sink.Outcome {
	n := 0
	for _, o := range ops {
		n += len(o.Document)
	}
	*f.most = max(*f.most, n)
	return f.Sink.Write(ctx, ops)
}

// The payloads of a flight may not all fit into the memory of a function. So they are loaded and
// written one bulk request at a time.
func TestPayloadsAreLoadedABulkRequestAtATime(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		const size, documents = 256 << 10, 200
		b.objects(func(string) ([]byte, error) { return fmt.Appendf(nil, `{"t":"%0*d"}`, size, 1), nil })
		most := 0
		b.through = func(s sink.Sink) sink.Sink { return fullest{s, &most} }
		b.fly(b.hold(many(documents, touched, "")...), 1)
		b.Noted(journal.Committed, documents)
		if limit := int(b.Config.Sinks["search"].BulkBytes) + 32*(size+64); most > limit {
			b.Errorf(
				"%d bytes of documents in memory at once, want at most %d: a bulk request and what is loaded at the "+
					"same time", most, limit)
		}
		b.inQueue(0)
	})
}

// A message may hold pointers to hundreds of bodies, and these objects may have grown since receive
// loaded them. So the bytes that a turn loads are bounded, and the other documents of the flight
// are written.
func TestPointersToBodiesThatHaveGrownAreLoadedWithinABound(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		loads, body := 0, ""
		b.Sources = b.Sources.WithLoader(func(_ context.Context, _, key string) ([]byte, error) {
			loads++
			return []byte(put(key, 1) + body), nil
		})
		var all []string
		for i := range 200 {
			pointer := fmt.Sprintf(`["software.amazon.payloadoffloading.PayloadS3Pointer",`+
				`{"s3BucketName":"open","s3Key":"p%d"}]`, i)
			all = append(all, `{"basicProperties":{},"data":"`+base64.StdEncoding.EncodeToString([]byte(pointer))+`"}`)
		}
		s := b.hold(`{"rmqMessagesByQueue":{"q::/":[`+strings.Join(all, ",")+`]}}`, put("a", 1))
		loads, body = 0, strings.Repeat(" ", 1<<20)
		b.turn(s)
		if loads > 96 {
			b.Errorf("%d MB loaded in one turn, want at most 96", loads)
		}
		b.holds("a", "1")
	})
}

// A turn handles a bounded number of documents. Documents whose payload never arrives must not take
// all places in every turn.
func TestDocumentsThatWaitDoNotKeepOthersOutOfTheTurn(t *testing.T) {
	stage{cfg: func(c *config.Config) {
		openBucket(c)
		c.Index.MaxItemsPerTurn = 2
	}}.play(t, func(b *bench) {
		b.objects(func(string) ([]byte, error) { return nil, errors.New("slow down") })
		s := b.hold(touched("a", 1), touched("b", 1), touched("c", 1), put("d", 1), put("e", 1), put("f", 1))
		for range 6 {
			s = b.turn(s)
		}
		for _, id := range []string{"d", "e", "f"} {
			b.holds(id, "1")
		}
	})
}
