package bench

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/lullhq/lull/internal/local/ledger"
	"github.com/lullhq/lull/internal/shard"
)

// Shape describes a trace.
type Shape struct {
	Rate     float64       // events a second
	Burst    int           // events of one burst
	Spread   time.Duration // within which a burst's events are sent
	For      time.Duration // how long bursts begin
	Docs     int           // documents that take turns; 0 for a document of its own for every burst
	Hot      bool          // one document, all the time, and nothing else
	Disorder bool          // 2 % of the events are sent twice, 5 % late by up to 5 s
	Seed     uint64
}

// Event is one message of a trace.
type Event struct {
	At      time.Duration
	Doc     int
	Version int
	Waited  bool // its freshness counts: the newest of its burst, or any of a document that is never quiet
}

// Trace is what an upstream sends, in order.
type Trace struct {
	Shape  Shape
	Events []Event
	Docs   int
	Bursts int // as the upstream makes them
}

// NewTrace draws a trace. The same shape gives the same trace.
func NewTrace(s Shape) *Trace {
	t := &Trace{Shape: s}
	r := rand.New(rand.NewPCG(s.Seed, 0x62656e6368))
	switch {
	case s.Hot:
		t.hot(r)
	default:
		t.bursts(r)
	}
	if s.Disorder {
		t.disorder(r)
	}
	slices.SortStableFunc(t.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return t
}

// hot is one document with arrivals at random.
func (t *Trace) hot(r *rand.Rand) {
	t.Docs, t.Bursts = 1, 1
	version := 0
	for at := time.Duration(0); at < t.Shape.For; at += gap(r, t.Shape.Rate) {
		version++
		t.Events = append(t.Events, Event{At: at, Version: version, Waited: true})
	}
}

// bursts begin at random; within one its events are anywhere, in the order of their versions.
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

// gap is the time between two arrivals at a rate.
func gap(r *rand.Rand, rate float64) time.Duration {
	return time.Duration(r.ExpFloat64() / rate * float64(time.Second))
}

// disorder is what an upstream and a standard queue may do to messages.
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

// Debounced is how many writes a debouncer in one process, without any fault or concurrency, would
// make of the trace: the floor.
func (t *Trace) Debounced(quiet, maxWait time.Duration) int {
	var d ledger.Debouncer
	begin := time.Unix(0, 0)
	for _, e := range t.Events {
		d.Arrive(shard.DocID(docName(e.Doc)), shard.OrderKey(fmt.Sprintf("%09d", e.Version)), begin.Add(e.At), quiet,
			maxWait)
	}
	return d.Bursts()
}

// Newest is the newest version of every document.
func (t *Trace) Newest() []int {
	newest := make([]int, t.Docs)
	for _, e := range t.Events {
		newest[e.Doc] = max(newest[e.Doc], e.Version)
	}
	return newest
}

// The body's head has one length, so that contenders find document and version by position: none of
// them pays for decoding in virtual time, lull's own decoding apart.
const (
	headSubject  = `{"specversion":"1.0","source":"/cms","type":"doc.changed","subject":"`
	headSequence = `","sequence":"`
	subjectWide  = 36
	versionWide  = 9
)

// filler is text that does not pack: a manifest of it is as large as one of real texts at the
// worst.
var filler = func() string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 540)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz      "[r.IntN(32)]
	}
	return string(b)
}()

func docName(doc int) string { return fmt.Sprintf("f4c394f9-7a30-11e4-a3cb-%012d", doc) }

// body is the event's message: about 700 bytes.
func (e Event) body() string {
	return headSubject + docName(e.Doc) + headSequence + fmt.Sprintf("%09d", e.Version) +
		`","data":{"title":"Document ` + strconv.Itoa(e.Doc) + `","text":"` + filler + `"}}`
}

// parse reads document and version of a body.
func parse(body string) (doc, version int) {
	rest := body[len(headSubject):]
	doc, _ = strconv.Atoi(rest[subjectWide-12 : subjectWide])
	rest = rest[subjectWide+len(headSequence):]
	version, _ = strconv.Atoi(rest[:versionWide])
	return doc, version
}
