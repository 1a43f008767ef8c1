// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/shard"
)

// Shape describes a trace.
type Shape struct {
	Rate     float64       // events a second
	Burst    int           // events of one burst
	Spread   time.Duration // the time within which the events of a burst are sent
	For      time.Duration // for how long new bursts begin
	Docs     int           // how many documents take turns; 0 gives every burst its own document
	Hot      bool          // only one document, which changes all the time
	Disorder bool          // 2 % of the events are sent twice, 5 % late by up to 5 s
	Trial    string        // the name of the [Trial] that is added; "" for none
	Seed     uint64
}

// Event is one message of a trace.
type Event struct {
	At      time.Duration
	Doc     int
	Version int  // the upstream's counter
	Delete  bool // the document is deleted
	Epoch   int  // how often the source was restored before; each restore sets the source's counter back
	Run     int  // the number of the resync run, which sends a version again with its current content; 0 for none
	Edit    int  // of two edits with the same version, the one with the higher Edit is newer
	Rank    int  // the rank of this state among all states of the document; copies have the same rank
	Waited  bool // whether the freshness of the event counts
}

// older compares two states of a document in the upstream's order.
func older(a, b Event) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Run, b.Run),
		cmp.Compare(a.Edit, b.Edit))
}

// Trace is the list of messages that an upstream sends, in order.
type Trace struct {
	Shape  Shape
	Events []Event
	Docs   int
	Bursts int // bursts as the upstream made them
	Acts   []Act
}

// Act is an event other than a message, for example an action of an operator. Messages follow the
// last Act.
type Act struct {
	At time.Duration
	Do func(ctx context.Context, w *World)
}

// NewTrace returns a random trace. The same shape always gives the same trace.
func NewTrace(s Shape) *Trace {
	t := &Trace{Shape: s}
	r := rand.New(rand.NewPCG(s.Seed, 0x62656e6368))
	if s.Hot {
		t.hot(r)
	} else {
		t.bursts(r)
	}
	if s.Disorder {
		t.disorder(r)
	}
	if s.Trial != "" {
		trial(s.Trial).change(t, r)
	}
	t.rank()
	slices.SortStableFunc(t.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return t
}

// rank numbers the states of every document, starting at 1.
func (t *Trace) rank() {
	byDoc := make([][]int, t.Docs)
	for i, e := range t.Events {
		byDoc[e.Doc] = append(byDoc[e.Doc], i)
	}
	for _, events := range byDoc {
		slices.SortStableFunc(events, func(a, b int) int { return older(t.Events[a], t.Events[b]) })
		rank := 0
		for n, i := range events {
			if n == 0 || older(t.Events[events[n-1]], t.Events[i]) != 0 {
				rank++
			}
			t.Events[i].Rank = rank
		}
	}
}

// hot adds one document whose events arrive at random.
func (t *Trace) hot(r *rand.Rand) {
	t.Docs, t.Bursts = 1, 1
	version := 0
	for at := time.Duration(0); at < t.Shape.For; at += gap(r, t.Shape.Rate) {
		version++
		t.Events = append(t.Events, Event{At: at, Version: version, Waited: true})
	}
}

// bursts adds bursts that begin at random. Within a burst the events are at random times, in the
// order of their versions.
func (t *Trace) bursts(r *rand.Rand) {
	s := t.Shape
	var versions []int
	offsets := make([]time.Duration, s.Burst)
	for at := time.Duration(0); at < s.For; at += gap(r, s.Rate/float64(s.Burst)) {
		doc := t.Bursts
		if s.Docs > 0 {
			doc %= s.Docs
		}
		if doc == len(versions) {
			versions = append(versions, 0)
		}
		for i := range offsets {
			offsets[i] = time.Duration(r.Int64N(int64(max(s.Spread, 1))))
		}
		if s.Burst == 1 {
			offsets[0] = 0
		}
		slices.Sort(offsets)
		for i, o := range offsets {
			versions[doc]++
			t.Events = append(t.Events, Event{At: at + o, Doc: doc, Version: versions[doc], Waited: i == s.Burst-1})
		}
		t.Bursts++
	}
	t.Docs = len(versions)
}

// gap returns a random time between two arrivals at a rate.
func gap(r *rand.Rand, rate float64) time.Duration {
	return time.Duration(r.ExpFloat64() / rate * float64(time.Second))
}

// disorder changes messages as an upstream and a standard queue may do.
func (t *Trace) disorder(r *rand.Rand) {
	for i := range t.Events {
		e := t.Events[i]
		if r.Float64() < 0.02 {
			again := e
			again.At += time.Duration(r.Int64N(int64(time.Second)))
			again.Waited = false
			t.Events = append(t.Events, again)
		}
		if r.Float64() < 0.05 {
			t.Events[i].At += time.Duration(r.Int64N(int64(5 * time.Second)))
		}
	}
}

// Debounced returns how many writes a debouncer in one process would make of the trace, without
// faults and concurrency. No program can make fewer writes.
func (t *Trace) Debounced(quiet, maxWait time.Duration) int {
	var d ledger.Debouncer
	begin := time.Unix(0, 0)
	for _, e := range t.Events {
		d.Arrive(shard.DocID(docName(e.Doc)), shard.OrderKey(fmt.Sprintf("%09d", e.Version)), begin.Add(e.At), quiet,
			maxWait)
	}
	return d.Bursts()
}

// Newest returns the newest state of every document.
func (t *Trace) Newest() []Event {
	newest := make([]Event, t.Docs)
	for _, e := range t.Events {
		if e.Rank > newest[e.Doc].Rank {
			newest[e.Doc] = e
		}
	}
	return newest
}

// numberWide is how many digits versions and ranks have, so that all bodies have the same length.
const numberWide = 9

// filler is text that compresses badly. A manifest that contains filler is at least as large as a
// manifest that contains real texts.
var filler = func() string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 520)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz      "[r.IntN(32)]
	}
	return string(b)
}()

const docPrefix = "f4c394f9-7a30-11e4-a3cb-"

func docName(doc int) string { return fmt.Sprintf("%s%012d", docPrefix, doc) }

// docOf returns the number of a document with this name.
func docOf(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, docPrefix))
	return n
}

// origin is the first moment of virtual time.
var origin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// body returns the event's message of about 700 bytes.
func (e Event) body() string {
	kind, extra := "changed", ""
	if e.Delete {
		kind = "deleted"
	}
	if e.Run > 0 {
		extra = fmt.Sprintf(`"mode":"resync","resyncrun":"%s",`, resyncRun(e.Run))
	}
	if e.Edit > 0 {
		extra += `"time":"` + origin.Add(time.Duration(e.Edit)*time.Second).Format(time.RFC3339) + `",`
	}
	return fmt.Sprintf(`{"specversion":"1.0","source":"/cms","type":"doc.%s","subject":"%s","sequence":"%0*d",%s`+
		`"data":{"rank":"%0*d","title":"Document %d","text":"%s"}}`, kind, docName(e.Doc), numberWide, e.Version, extra,
		numberWide, e.Rank, e.Doc, filler)
}

// resyncRun returns the name of a resync run. Later runs have names that sort after earlier ones.
func resyncRun(n int) string {
	var id ulid.ULID
	_ = id.SetTime(uint64(origin.UnixMilli() + int64(n))) // always fits, because the time is in this century
	return id.String()
}

// parse parses a body.
func parse(body string) Event {
	f := gjson.GetMany(body, "type", "subject", "sequence", "data.rank")
	return Event{
		Delete: f[0].Str == "doc.deleted", Doc: docOf(f[1].Str), Version: int(f[2].Int()), Rank: int(f[3].Int()),
	}
}
