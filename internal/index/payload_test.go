package index_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/payload"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

func touched(id string, version int) string {
	return fmt.Sprintf(`{"type":"doc.touched","subject":%q,"sequence":"%d","dataref":"s3://open/%s-%d"}`, id, version,
		id, version)
}

func openBucket(c *config.Config) { c.Payload.Allow = []config.BucketPrefix{{Bucket: "open"}} }

// objects is a bucket behind the loader that the functions use.
func (b *bench) objects(get func(key string) ([]byte, error)) {
	b.payloads = payload.New(func(_ context.Context, bucket, key string) ([]byte, error) {
		if bucket != "open" {
			b.Errorf("asked for bucket %s", bucket)
		}
		return get(key)
	}, nil, 1<<20)
}

// A lease is never spent on waiting for a payload.
func TestAPayloadIsLoadedBeforeItsDocumentIsClaimed(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		loaded := map[string]int{}
		b.objects(func(key string) ([]byte, error) {
			loaded[key]++
			if r := b.Row(doc("a")); r.Owner != "" {
				b.Errorf("row %+v, want no lease while the payload is loaded", r)
			}
			return []byte(`{"title":"from ` + key + `"}`), nil
		})
		s := b.hold(touched("a", 1), touched("a", 2))
		b.fly(s, 1)
		got, _, err := b.sink.Get(b.Context(), doc("a"))
		if err != nil || string(got.Document) != `{"title":"from a-2"}` {
			b.Errorf("document %s (%v), want the newest version's", got.Document, err)
		}
		if loaded["a-1"] != 0 || loaded["a-2"] != 1 {
			b.Errorf("loaded %v, want the newest version's payload once and no other", loaded)
		}
		b.inQueue(0)
	})
}

func TestADeleteLoadsNothing(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		b.objects(func(string) ([]byte, error) {
			b.Error("asked for the payload of a delete")
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
		b.holds("b", "1") // it does not hold up others
		if r := b.Row(doc("a")); r.Claimed != "" || r.Refusals != 0 || s.Done {
			b.Errorf("row %+v, done %v: want it neither claimed nor refused, and its flight to wait", r, s.Done)
		}
		away = false
		b.fly(s, 1)
		b.holds("a", "1")
		b.inQueue(0)
	})
}

// What can never become a document is a dead letter, without asking the sink, and the newest good
// version has its turn.
func TestWhatCannotBecomeADocumentIsADeadLetter(t *testing.T) {
	gone := &event.Invalid{Reason: deadletter.Payload, Field: "dataref", Problem: "no such object"}
	for name, c := range map[string]struct {
		spoil  func(b *bench)
		reason deadletter.Reason
		detail string
	}{
		"no such object": {func(b *bench) {
			b.objects(func(string) ([]byte, error) { return nil, gone })
		}, deadletter.Payload, "no such object"},
		"no document in it": {func(b *bench) {
			b.objects(func(string) ([]byte, error) { return []byte(`[1,2]`), nil })
		}, deadletter.Payload, "dataref: data is an array"},
		"no loader": {func(*bench) {}, deadletter.Payload, "not configured"},
		"its place is forbidden now": {func(b *bench) {
			cfg := b.Config
			cfg.Payload.Allow = nil
			b.deploy(&cfg)
		}, deadletter.Contract, "were the source's settings changed?"},
		"it belongs elsewhere now": {func(b *bench) {
			cfg := b.Config
			cfg.DefaultCollection = "elsewhere"
			cfg.Sources = map[string]config.Source{"native": {Kind: "native", Collection: "elsewhere"}}
			b.deploy(&cfg)
		}, deadletter.Contract, "were the source's settings changed?"},
	} {
		t.Run(name, func(t *testing.T) {
			stage{cfg: openBucket}.play(t, func(b *bench) {
				s := b.hold(touched("a", 2))
				c.spoil(b)
				b.fly(s, 1)
				l := b.TakeLetters(b.dead)
				if len(l) != 1 || l[0].Reason != c.reason || !strings.Contains(l[0].Detail, c.detail) ||
					l[0].Body != touched("a", 2) || l[0].Key != b.keyOf(touched("a", 2)) {
					b.Errorf("dead letters %+v, want one: %s, %s", l, c.reason, c.detail)
				}
				if n := b.sink.Counts().Requests; n != 0 {
					b.Errorf("%d sink requests for what is not a document", n)
				}
				if r := b.Row(doc("a")); r.Pending != "" || r.Owner != "" || r.Dead == "" {
					b.Errorf("row %+v, want it settled with the version dead", r)
				}
				b.Noted(journal.DeadLettered, 1)
				b.inQueue(0)
			})
		})
	}
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

// keyOf is the key of a body by the settings of the bench.
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

// A message whose body is a pointer is decoded again in every turn: while the body cannot be had,
// it waits.
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
		b.fly(s, 1)
		b.holds("a", "1")
	})
}

// sinkMargin is what index keeps of an invocation for COMMIT and DeleteMessage.
const sinkMargin = 2 * time.Second

// Payloads that take all the time are not a reason to leave others unwritten, turn after turn.
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
		var bodies []string
		for i := range 150 {
			bodies = append(bodies, touched(fmt.Sprint("slow", i), 1))
		}
		s := b.hold(append(bodies, put("plain", 1))...)
		for range 6 {
			begin := s.Wake()
			if s = b.turn(s); time.Since(begin) > b.Config.Index.Timeout-sinkMargin {
				b.Errorf("a turn took %s", time.Since(begin))
			}
		}
		b.holds("plain", "1")
		b.Noted(journal.Claimed, 1)
		b.inQueue(150)
	})
}

// fullest is a sink that keeps the most bytes that it was given at once.
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

// A flight may refer to more than a function has room for: it is loaded and written a bulk request
// at a time.
func TestPayloadsAreLoadedABulkRequestAtATime(t *testing.T) {
	stage{cfg: openBucket}.play(t, func(b *bench) {
		const size, documents = 256 << 10, 200
		b.objects(func(string) ([]byte, error) { return fmt.Appendf(nil, `{"t":"%0*d"}`, size, 1), nil })
		most := 0
		b.through = func(s sink.Sink) sink.Sink { return fullest{s, &most} }
		var bodies []string
		for i := range documents {
			bodies = append(bodies, touched(fmt.Sprint(i), 1))
		}
		b.fly(b.hold(bodies...), 1)
		b.Noted(journal.Committed, documents)
		if limit := int(b.Config.Sinks["search"].BulkBytes) + 32*(size+64); most > limit {
			b.Errorf(
				"%d bytes of documents in memory at once, want at most %d: a bulk request and what is loaded at the "+
					"same time", most, limit)
		}
		b.inQueue(0)
	})
}
