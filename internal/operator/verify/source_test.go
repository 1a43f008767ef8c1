// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/operate/operatetest"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
	"github.com/lullhq/lull/source"
)

// early is a run that began before virtual time begins.
const early = "00K0000000000000000000000A"

const address = "https://cms.example.org/"

// cms is a source that lull can ask, with a stack in which a touch is fetched and written at once.
type cms struct {
	*bench
	mu        sync.Mutex     // the stack asks about several documents at the same time
	documents map[string]int // the version of each document
	answer    func(id string) error
	asked     []time.Time
	versioned bool
	lost      bool // no repair arrives
}

// pull plays a story in virtual time.
func pull(t *testing.T, versioned bool, story func(c *cms)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cms{documents: map[string]int{}, versioned: versioned}
		c.bench = &bench{
			Rig: usecasetest.Open(t, func(cfg *config.Config) {
				cfg.Sinks = map[string]config.Sink{"search": {Kind: "memory"}}
				daily := &config.Verify{Every: 24 * time.Hour}
				cfg.Collections = map[string]config.Collection{"content": {Verify: daily}}
				s := cfg.Sources["native"]
				if s.Fetch = (&source.Fetch{URL: address + "{id}"}); versioned {
					s.Fetch.Version = "/v"
				}
				cfg.Sources["native"] = s
				cfg.Complete()
			}),
			sink:  memorysink.New(clock.System{}, memorysink.Settings{Versions: true}),
			calls: 1 << 30,
		}
		time.Sleep(24 * time.Hour) // virtual time, so that the test can use times before now
		story(c)
	})
}

func (c *cms) body(id string, version int) string {
	if c.versioned {
		return fmt.Sprintf(`{"v":%d,"title":%q}`, version, id)
	}
	return fmt.Sprintf(`{"title":"%s %d"}`, id, version)
}

func (c *cms) fetch(_ context.Context, from, ref string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := strings.TrimPrefix(ref, address)
	c.asked = append(c.asked, time.Now())
	if from != "native" {
		return nil, fmt.Errorf("source %s was asked", from)
	}
	if c.answer != nil {
		if err := c.answer(id); err != nil {
			return nil, err
		}
	}
	v := c.documents[id]
	if v == 0 {
		return nil, errMissing
	}
	return []byte(c.body(id, v)), nil
}

var errMissing = &event.Invalid{Field: "fetch", Problem: "the source answered 404", Missing: true}

// write is what a stack did an hour ago: it fetched a version, and wrote it to the row, the sink,
// or both.
func (c *cms) write(id string, row, sinkVersion int) {
	c.Helper()
	if row > 0 {
		e := c.EventOf(touch(id, row))
		c.Change(e.Doc, func(r *shard.Row) {
			r.VersionClass, r.Committed, r.CommittedOp = e.Class, e.Key, shard.Put
			r.LastWrite = shard.MicrosOf(time.Now().Add(-time.Hour))
			r.ExpiresAt = c.Config.Lifecycle.Expires(time.Now())
		})
	}
	switch {
	case sinkVersion > 0:
		c.put(c.EventOf(touch(id, sinkVersion)), c.body(id, sinkVersion), time.Hour)
	case sinkVersion < 0:
		c.put(c.EventOf(touch(id, -sinkVersion-1)), c.body(id, -sinkVersion), time.Hour)
	}
}

func (c *cms) put(e event.Event, document string, ago time.Duration) {
	c.Helper()
	at := time.Now().Add(-ago)
	out := c.sink.Write(c.Context(), []sink.Op{{
		Doc: e.Doc, Kind: e.Op, Fence: shard.Fence(at.UnixMicro()), Key: e.Key, Version: e.Version, At: at,
		Document: []byte(document),
	}})
	if out[0].Kind != sink.Applied {
		c.Fatalf("write: %+v", out)
	}
}

func touch(id string, version int) string {
	return fmt.Sprintf(`{"type":"doc.touched","subject":%q,"sequence":"%d"}`, id, version)
}

// stack returns the operations. A touch is judged by its row, fetched and written at once.
func (c *cms) stack() operate.API {
	o := c.operator()
	o.Fetch = c.fetch
	o.Publisher = func(_ context.Context, _ string, lane flight.Lane, out queue.Outgoing) error {
		if c.sent++; lane != flight.Bulk {
			c.Errorf("a repair was sent in lane %s", lane)
		}
		e := c.EventOf(out.Body)
		v := c.documents[e.Doc.ID()]
		if row := c.Row(e.Doc); e.Key <= row.Committed || v == 0 || c.lost {
			return nil
		}
		c.Change(e.Doc, func(r *shard.Row) {
			r.VersionClass, r.Committed, r.CommittedOp = e.Class, e.Key, shard.Put
			r.LastWrite = shard.MicrosOf(time.Now())
		})
		c.put(e, c.body(e.Doc.ID(), v), 0)
		return nil
	}
	all := o.API()
	return operatetest.API(all, leaving{all, c.bench})
}

func (l leaving) AskSource(ctx context.Context, o operate.SourceOrder) (operate.SourceAnswers, error) {
	a, err := l.all.AskSource(ctx, o)
	return a, l.call(err)
}

// compare runs one program that begins or continues a verification.
func (c *cms) compare(o verify.Order, change ...func(*verify.Verification)) (verify.Result, []string, error) {
	c.Helper()
	o.Collection, o.FromSource = "content", true
	stack := c.stack()
	v := &verify.Verification{
		Order: o, Stack: stack, Clock: clock.System{}, By: "ann", Patience: 2 * time.Minute, Rate: 100, MaxRemovals: 100,
	}
	for _, f := range change {
		f(v)
	}
	var lines []verify.Line
	r := job.Runner{Store: stack.JobStore(), Clock: clock.System{}, By: "ann"}
	state, err := job.Run(c.Context(), r, v.Job(early), func(l verify.Line) { lines = append(lines, l) })
	if err != nil {
		return verify.Result{}, told(lines), err
	}
	res, err := o.ResultOf(state)
	return res, told(lines), err
}

// shows checks the version of a document in the sink and in its row; 0 for none.
func (c *cms) shows(id string, want int) {
	c.Helper()
	s, there, err := c.sink.Get(c.Context(), usecasetest.Doc(id))
	row := c.Row(usecasetest.Doc(id))
	switch {
	case err != nil:
		c.Fatal(err)
	case want == 0 && (there || row.CommittedOp == shard.Put):
		c.Errorf("%s: the sink has it: %t, and the row is at %s; want neither", id, there, row.Committed)
	case want > 0 && (!there || string(s.Document) != c.body(id, want) || row.Committed.String() != s.Key):
		c.Errorf("%s: got %s at %s (%t), the row is at %s; want version %d", id, s.Document, s.Key, there, row.Committed, want)
	}
}

// loss is one way in which documents differ from their source.
type loss struct {
	// source, row and sink are versions; 0 for none. A negative sink is that content at an older
	// version.
	source, row, sink int
	op                shard.Operation
	difference        string
	outcome           string
}

// losses has a document for each loss, and 40 documents that do not differ.
func (c *cms) losses(all map[string]loss) {
	c.Helper()
	for i := range 40 {
		id := fmt.Sprintf("same%02d", i)
		c.documents[id] = 5
		c.write(id, 5, 5)
	}
	for id, l := range all {
		if l.source > 0 {
			c.documents[id] = l.source
		}
		c.write(id, l.row, l.sink)
		if l.op == shard.Delete {
			c.Change(usecasetest.Doc(id), func(r *shard.Row) { r.CommittedOp = shard.Delete })
		}
	}
}

var allLosses = map[string]loss{
	"emptied":       {5, 5, 0, shard.Put, "missing", "resent"},
	"restored":      {5, 5, 4, shard.Put, "older", "resent"},
	"same-content":  {5, 5, -5, shard.Put, "older", "resent"},
	"row-deleted":   {5, 0, 5, "", "behind", "raised"},
	"row-restored":  {5, 4, 5, shard.Put, "behind", "raised"},
	"both-restored": {6, 4, 4, shard.Put, "older", "resent"},
	"row-and-event": {7, 0, 5, "", "behind", "raised"},
	"undeleted":     {0, 5, 4, shard.Delete, "undone", "reasserted"},
	"wrong-delete":  {7, 6, 0, shard.Delete, "missing", "resent"},
	"lost-delete":   {0, 5, 5, shard.Put, "orphan", "removed"},
	"row-lies":      {0, 5, 0, shard.Put, "orphan", "removed"},
}

func TestEachLossIsHealedFromTheSource(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(allLosses)
		res, lines, err := c.compare(verify.Order{Repair: true})
		if err != nil || res.Remaining != 0 || res.InMotion != 0 {
			t.Fatalf("got %+v, %v, %v", res, lines, err)
		}
		for id, l := range allLosses {
			want := fmt.Sprintf("content#%s %s %s", id, l.difference, l.outcome)
			if !slices.Contains(lines, want) {
				t.Errorf("no line %q in %v", want, lines)
			}
			c.shows(id, l.source)
		}
		c.shows("same07", 5)
		if most := 2*len(allLosses) + 40; res.Requests > most {
			t.Errorf("%d requests to the source, at most %d are needed", res.Requests, most)
		}
		if sent := c.sent; sent > len(allLosses) {
			t.Errorf("%d touches", sent)
		}
		res, lines, err = c.compare(verify.Order{Repair: true})
		if err != nil || len(res.Drift) > 0 || c.sent > len(allLosses) {
			t.Errorf("a second verification: got %+v, %v, %v", res, lines, err)
		}
	})
}

func TestACheckFindsTheSameAndChangesNothing(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(allLosses)
		c.refuse = func(w shard.Write) bool {
			if w.Doc.IsDocument() {
				t.Errorf("a check wrote %s", w.Transition)
			}
			return false
		}
		res, lines, err := c.compare(verify.Order{})
		if err != nil || c.sent > 0 || res.Remaining != len(allLosses) {
			t.Fatalf("got %+v, %v, %v, %d sent", res, lines, err, c.sent)
		}
		for id, l := range allLosses {
			if want := fmt.Sprintf("content#%s %s found", id, l.difference); !slices.Contains(lines, want) {
				t.Errorf("no line %q in %v", want, lines)
			}
		}
	})
}

// The answer has no version, so lull compares the content. The touch has the version that lull has,
// in a resync run.
func TestASourceWithoutVersionsIsComparedByContent(t *testing.T) {
	pull(t, false, func(c *cms) {
		c.losses(map[string]loss{
			"emptied":   {5, 5, 0, shard.Put, "", ""},
			"lost":      {6, 5, 5, shard.Put, "", ""},
			"untouched": {5, 5, 5, shard.Put, "", ""},
		})
		res, lines, err := c.compare(verify.Order{Repair: true})
		if err != nil || res.Remaining != 0 || !slices.Equal(lines, []string{
			"content#emptied missing resent", "content#lost changed resent",
		}) {
			t.Errorf("got %+v, %v, %v", res, lines, err)
		}
		for id, v := range map[string]int{"emptied": 5, "lost": 6, "untouched": 5} {
			c.shows(id, v)
		}
	})
}

func TestAChangeWhoseEventIsOnTheWayIsNotDrift(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		c.documents["same03"] = 6
		delete(c.documents, "same04")
		go func() {
			time.Sleep(10 * time.Second)
			c.write("same03", 6, 6)
			e := c.EventOf(`{"type":"doc.deleted","subject":"same04","sequence":"6"}`)
			c.Change(e.Doc, func(r *shard.Row) { r.Committed, r.CommittedOp = e.Key, shard.Delete })
			c.put(e, "", 0)
		}()
		res, lines, err := c.compare(verify.Order{Repair: true})
		if err != nil || len(lines) > 0 || c.sent > 0 || res.InMotion > 0 {
			t.Errorf("got %+v, %v, %v, %d sent", res, lines, err, c.sent)
		}
	})
}

// Without a version in the answer, the content alone shows that the source is ahead.
func TestAChangeOfASourceWithoutVersionsMayBeOnTheWay(t *testing.T) {
	pull(t, false, func(c *cms) {
		c.losses(nil)
		c.documents["same03"] = 6
		time.AfterFunc(10*time.Second, func() { c.write("same03", 6, 6) })
		res, lines, err := c.compare(verify.Order{Repair: true})
		if err != nil || len(lines) > 0 || c.sent > 0 || res.InMotion > 0 {
			t.Errorf("got %+v, %v, %v, %d sent", res, lines, err, c.sent)
		}
	})
}

// A repair that never arrives is not counted as right. The version alone would look right: another
// program changed the content, and the version is the same.
func TestARepairThatNeverArrivesRemains(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(map[string]loss{"emptied": {5, 5, 0, shard.Put, "", ""}})
		c.put(c.EventOf(touch("same00", 5)), `{"v":5,"title":"by hand"}`, 30*time.Minute)
		c.lost = true
		res, lines, err := c.compare(verify.Order{Repair: true})
		if err != nil || res.Remaining != 2 || res.Drift["changed"] != 1 || res.Drift["missing"] != 1 {
			t.Errorf("got %+v, %v, %v", res, lines, err)
		}
	})
}

// A document is in motion when the walk reaches it. The source is asked when it is at rest.
func TestADocumentInMotionIsComparedLater(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		e := c.EventOf(touch("moves", 5))
		c.Change(e.Doc, func(r *shard.Row) {
			r.VersionClass, r.Committed, r.CommittedOp = e.Class, e.Key, shard.Put
			r.LastWrite = shard.MicrosOf(time.Now())
		})
		c.put(c.EventOf(touch("moves", 4)), c.body("moves", 4), 0)
		c.documents["moves"] = 5
		res, lines, err := c.compare(verify.Order{Repair: true})
		if err != nil || res.InMotion > 0 || !slices.Equal(lines, []string{"content#moves older resent"}) {
			t.Errorf("got %+v, %v, %v", res, lines, err)
		}
		c.shows("moves", 5)
	})
}

// A document that lull wrote a moment ago is not removed, because a replica of the source may lag.
func TestANewDocumentIsNoOrphan(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		e := c.EventOf(touch("new", 1))
		c.Change(e.Doc, func(r *shard.Row) { r.VersionClass, r.Committed, r.CommittedOp = e.Class, e.Key, shard.Put })
		c.put(e, c.body("new", 1), 3*time.Minute)
		if res, lines, err := c.compare(verify.Order{Repair: true}); err != nil || len(lines) > 0 {
			t.Errorf("got %+v, %v, %v", res, lines, err)
		}
	})
}

// A source that answers 404 for everything must not empty the index.
func TestASourceThatLacksEverythingRemovesNothing(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		all := c.documents
		c.documents = map[string]int{}
		_, _, err := c.compare(verify.Order{Repair: true})
		var ask *verify.Unconfirmed
		if !errors.As(err, &ask) || ask.Orphans != 40 {
			t.Errorf("got %v, want a question about 40 documents", err)
		}
		res, lines, err := c.compare(verify.Order{Repair: true}, func(v *verify.Verification) { v.Unattended = true })
		if err != nil || res.Remaining != 40 || res.Drift["orphan"] != 40 {
			t.Errorf("got %+v, %v, %v", res, lines, err)
		}
		c.documents = all
		for id := range all {
			c.shows(id, 5)
		}
	})
}

func TestFewRemovalsNeedNoOperator(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		delete(c.documents, "same00")
		delete(c.documents, "same01")
		few := func(n int) func(v *verify.Verification) {
			return func(v *verify.Verification) { v.MaxRemovals = n }
		}
		var ask *verify.Unconfirmed
		if _, _, err := c.compare(verify.Order{Repair: true}, few(1)); !errors.As(err, &ask) || ask.Orphans != 2 {
			t.Errorf("got %v, want a question about two documents", err)
		}
		res, _, err := c.compare(verify.Order{Repair: true}, few(2))
		if err != nil || res.Repaired["removed"] != 2 {
			t.Errorf("got %+v, %v", res, err)
		}
		c.shows("same01", 0)
	})
}

func TestAnOperatorConfirmsTheRemovals(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		c.documents = map[string]int{"same00": 5}
		if _, _, err := c.compare(verify.Order{Repair: true}); err == nil {
			t.Error("39 of 40 documents were removed without a question")
		}
		res, _, err := c.compare(verify.Order{Repair: true}, func(v *verify.Verification) { v.Confirmed = true })
		if err != nil || res.Repaired["removed"] != 39 || res.Remaining != 0 {
			t.Errorf("got %+v, %v", res, err)
		}
		c.shows("same00", 5)
		c.shows("same01", 0)
	})
}

func TestTheSourceGetsNoMoreRequestsThanTheRate(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(nil)
		res, _, err := c.compare(verify.Order{}, func(v *verify.Verification) { v.Rate = 4 })
		if err != nil || res.Requests != 40 || len(c.asked) != 40 {
			t.Fatalf("got %+v, %v, %d requests", res, err, len(c.asked))
		}
		for i := 8; i < len(c.asked); i++ {
			if d := c.asked[i].Sub(c.asked[i-8]); d < 2*time.Second {
				t.Errorf("8 requests in %s, want 2s at least", d)
			}
		}
	})
}

// The source asks lull to wait, and is away for a while.
func TestASourceThatIsAwayIsLeftInPeace(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(map[string]loss{"emptied": {5, 5, 0, shard.Put, "", ""}})
		began, asked := time.Now(), 0
		c.answer = func(string) error {
			if asked++; time.Since(began) < 10*time.Minute {
				return &source.Unavailable{Problem: "the source answered 429", RetryAfter: 5 * time.Minute}
			}
			return nil
		}
		res, _, err := c.compare(verify.Order{Repair: true})
		if err != nil || res.Remaining > 0 || time.Since(began) < 10*time.Minute {
			t.Errorf("got %+v, %v, after %s", res, err, time.Since(began))
		}
		c.shows("emptied", 5)
		late := func(at time.Time) bool { return at.Sub(began) >= 10*time.Minute }
		if early := slices.IndexFunc(c.asked, late); early > 20 {
			t.Errorf("%d requests while the source asked lull to wait", early)
		}
	})
}

func TestAJobWhoseSourceIsAwayStopsAndContinues(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(map[string]loss{"emptied": {5, 5, 0, shard.Put, "", ""}})
		down := true
		c.answer = func(string) error {
			if down && len(c.asked) > 20 {
				return &source.Unavailable{Problem: "the source answered 503"}
			}
			return nil
		}
		_, _, err := c.compare(verify.Order{Repair: true})
		var away *verify.SourceAway
		if !errors.As(err, &away) || !strings.Contains(err.Error(), "503") {
			t.Fatalf("got %v, want that the source is away", err)
		}
		before := len(c.asked)
		if _, _, err = c.compare(verify.Order{Repair: true}); err == nil || len(c.asked) != before+2 {
			t.Errorf("got %v after %d requests, want two requests", err, len(c.asked)-before)
		}
		down = false
		res, _, err := c.compare(verify.Order{Repair: true})
		if err != nil || res.Remaining > 0 || res.InMotion > 0 {
			t.Errorf("got %+v, %v", res, err)
		}
		c.shows("emptied", 5)
	})
}

// One document that the source cannot deliver does not stop the comparison of the others.
func TestADocumentWithoutAnAnswerDoesNotStopTheJob(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(map[string]loss{"emptied": {5, 5, 0, shard.Put, "", ""}})
		c.answer = func(id string) error {
			if id == "same01" {
				return &source.Unavailable{Problem: "the source answered 500"}
			}
			return nil
		}
		res, lines, err := c.compare(verify.Order{Repair: true})
		const want = "not compared: content#same01: the source answered 500"
		if err != nil || res.Invalid != 1 || !slices.Contains(lines, want) {
			t.Errorf("got %+v, %v, %v", res, lines, err)
		}
		c.shows("emptied", 5)
	})
}

// A program is killed after each of its calls, and another continues.
func TestAVerificationFromTheSourceContinuesAfterEachCall(t *testing.T) {
	pull(t, true, func(c *cms) {
		c.losses(allLosses)
		var res verify.Result
		for calls := 1; ; calls++ {
			c.calls = 9
			var err error
			if res, _, err = c.compare(verify.Order{Repair: true}); err == nil {
				break
			}
			if calls > 200 {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Minute) // the lease has ended
		}
		c.calls = 1 << 30
		for id, l := range allLosses {
			c.shows(id, l.source)
		}
		if res.Remaining > 0 {
			t.Errorf("got %+v", res)
		}
	})
}
