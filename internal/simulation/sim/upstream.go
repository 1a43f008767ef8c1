// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
)

// Arrival is one message of an upstream. At is its time after the beginning of the run.
type Arrival struct {
	At      time.Duration
	Message queue.Outgoing
	Where   string // the place of the message in an input; empty if there is none
}

// InOrder sorts arrivals by time.
func InOrder(list []Arrival) {
	slices.SortStableFunc(list, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
}

// Upstream is the list of all messages that are sent to a World.
type Upstream struct {
	Arrivals []Arrival
	Objects  []Object
	Calm     time.Duration // when the injected failures end
	Again    bool          // documents are published again with the same bytes

	poisons map[version]poison
}

// poison is how the sink fails at a version.
type poison byte

const (
	rejected poison = iota + 1 // the sink refuses the version for good
	refused                    // the sink refuses the version every time, without a known reason
	kills                      // every request with the version gets no answer
)

// author writes the messages of an upstream. An author has separate dice, so that a seed always
// sends the same events, whatever fails.
type author struct {
	dice
	list    []Arrival
	poison  map[version]poison
	sources *source.Set
	count   int
	refers  bool // payloads are objects, and only the newest version of an object exists
	objects []Object
	shape
}

// shape is what an upstream sends in addition to a few documents of one collection. The zero shape
// adds nothing.
type shape struct {
	docs        int           // more documents, each with its own bursts
	collections []string      // further collections; each document gets a random one
	tenants     int           // number of tenants; the messages of a tenant are a message group
	quiet       bool          // some deletes are sent as changes, if documents are fetched
	resync      bool          // every document is sent again in one run in the bulk lane
	more        int           // how often each document changes again later
	again       bool          // most changes of a document are between two contents, or keep the content
	over        time.Duration // the longest time after the first change
}

// Write returns the upstream of a seed: a few documents in bursts, out of order and more than once.
// The upstream includes deletes, equal versions with different payloads, poison, junk, several
// events in one message, resyncs and scheduled events. All are native events of the default
// collection.
func Write(seed uint64, sources *source.Set) Upstream { return write(seed, sources, shape{}) }

func write(seed uint64, sources *source.Set, s shape) Upstream {
	a := &author{
		dice: newDice(seed, 0x75707374), poison: map[version]poison{}, sources: sources, refers: refers(sources),
		shape: s,
	}
	docs := 1 + a.IntN(1+a.IntN(6)) + s.docs
	span := 20*time.Second + a.upTo(90*time.Second)
	for d := range docs {
		doc := &subject{id: fmt.Sprintf("doc-%d", d)}
		doc.collection = a.collection()
		a.document(doc, 0, span)
		// A later time has higher versions. An upstream sends a version for the first time soon
		// after it made the version, and not days later.
		times := make([]time.Duration, s.more)
		for i := range times {
			times[i] = a.upTo(s.over)
		}
		slices.Sort(times)
		for _, at := range times {
			a.document(doc, at, span)
		}
	}
	if a.chance(0.3) {
		a.send(a.upTo(span), `{"type":"doc.changed","subject":"junk"}`)
	}
	if a.chance(0.2) {
		a.send(a.upTo(span), `not json`)
	}
	if a.chance(0.2) {
		a.send(a.upTo(span), `{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"changes"}`)
	}
	calm := span + 5*time.Second + a.upTo(60*time.Second)
	if a.chance(0.12) { // leaves time for an outage that is longer than executions and dead deadlines
		calm += 4*time.Minute + a.upTo(6*time.Minute)
	}
	a.join()
	a.group()
	InOrder(a.list)
	return Upstream{Arrivals: a.list, Objects: a.objects, Calm: calm + s.over, Again: s.again, poisons: a.poison}
}

// WriteBy returns the upstream of a seed in the formats of the sources: a few documents in bursts,
// out of order and more than once, with deletes and poison.
func WriteBy(seed uint64, s *Scribe) (Upstream, error) {
	d := newDice(seed, 0x736372696265)
	up := Upstream{poisons: map[version]poison{}}
	span := 20*time.Second + d.upTo(90*time.Second)
	for n := range len(s.ways) + d.IntN(6) {
		for v := range 1 + d.IntN(12) {
			at := d.upTo(span)
			p, err := s.write(n, v+1, d.chance(0.1), at)
			if err != nil {
				return up, err
			}
			up.add(at, p)
			if d.chance(0.1) {
				up.Arrivals = append(up.Arrivals, Arrival{At: at + d.upTo(30*time.Second), Message: p.Outgoing})
			}
			if d.chance(0.05) {
				up.poisons[version{p.Event.Doc, p.Event.Key}] = rejected
			}
		}
	}
	InOrder(up.Arrivals)
	up.Calm = span + 30*time.Second + d.upTo(60*time.Second)
	return up, nil
}

// group assigns a random tenant to each message.
func (a *author) group() {
	for i := range a.list {
		if a.tenants > 0 {
			group := queue.Text(fmt.Sprintf("tenant-%d", a.IntN(a.tenants)))
			a.list[i].Message.Attributes = map[string]queue.Attribute{queue.AttrGroup: group}
		}
	}
}

// subject is a document that an author writes.
type subject struct {
	id, collection string
	version        int           // the newest version so far
	removed        bool          // whether that version deletes the document
	last           time.Duration // when the last version is sent
}

// document writes the bursts of one document, starting at a given time.
func (a *author) document(doc *subject, from, span time.Duration) {
	at, own := a.upTo(span/2), false // own: this call has made a new version, as it must do first
	for range 1 + a.IntN(4) {
		spread, versions := a.upTo(2*time.Second), 1+a.IntN(6)
		if a.chance(0.3) { // a document that is never quiet
			spread = a.upTo(span)
			versions += int(spread / (4 * time.Second))
		}
		for range versions {
			// In the remaining cases, the same version is sent again with another payload. An
			// object has only one payload for each version.
			if !own || !a.chance(0.05) || a.refers {
				doc.version += 1 + a.IntN(3)
				own = true
			}
			a.change(doc, from+at+a.upTo(spread+1))
		}
		at += spread + 8*time.Second + a.upTo(20*time.Second)
		if at > span {
			break
		}
	}
	if a.resync {
		const run = `,"mode":"resync","resyncrun":"01JD2V6Y5T3KQ8Z4M7N9P0R1S3"`
		a.send(doc.last+time.Millisecond, a.event(doc, doc.removed, doc.collection+run))
	}
}

// event returns the event for a document's version.
func (a *author) event(doc *subject, removed bool, extra string) string {
	switch {
	case removed:
		return fmt.Sprintf(`{"type":"doc.deleted","subject":%q,"sequence":"%d"%s}`, doc.id, doc.version, extra)
	case a.refers:
		return touched(doc.id, doc.version, extra)
	}
	if a.again && a.chance(0.8) {
		return fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"%d"%s,"data":{"title":"%s %d"}}`, doc.id,
			doc.version, extra, doc.id, a.IntN(2))
	}
	return fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"%d"%s,"data":{"title":"%s %d %d"}}`, doc.id,
		doc.version, extra, doc.id, doc.version, a.count)
}

// collection picks a random collection for a document. The default collection is not named.
func (a *author) collection() string {
	if len(a.collections) == 0 || a.chance(0.5) {
		return ""
	}
	return fmt.Sprintf(`,"collection":%q`, oneOf(a.dice, a.collections...))
}

// change writes one version, with a random fault in some cases.
func (a *author) change(doc *subject, at time.Duration) {
	a.count++
	id, v := doc.id, doc.version
	extra := ""
	switch {
	case a.chance(0.04):
		extra = `,"mode":"resync","resyncrun":"01JD2V6Y5T3KQ8Z4M7N9P0R1S2"`
	case a.chance(0.03):
		extra = fmt.Sprintf(`,"notbefore":%q`, epoch.Add(at+5*time.Second+a.upTo(20*time.Second)).Format(time.RFC3339))
	case a.chance(0.015): // longer than a queue can keep the message
		extra = fmt.Sprintf(`,"notbefore":%q`, epoch.Add(at+15*time.Minute+a.upTo(30*time.Minute)).Format(time.RFC3339))
	}
	extra += doc.collection
	doc.removed, doc.last = a.chance(0.1), max(doc.last, at)
	body := a.event(doc, doc.removed, extra)
	if a.refers {
		o := Object{At: at, Doc: id, Version: v, Removed: doc.removed}
		e := a.sources.Decode(queue.Message{Body: touched(id, v, doc.collection), Sent: epoch})[0].Event
		if e.Fetch != "" {
			o.Ref = e.DataRef // a delete has no reference, so the reference of the puts stays
		}
		if a.objects = append(a.objects, o); e.Fetch != "" && a.quiet && a.chance(0.5) {
			body = touched(id, v, extra) // the message does not say that the event is a delete
		}
	}
	a.send(at, body)
	if a.chance(0.05) {
		a.send(at+a.upTo(30*time.Second), body)
	}
	if a.chance(0.07) {
		e := a.sources.Decode(queue.Message{Body: body, Sent: epoch})[0].Event
		a.poison[version{e.Doc, e.Key}] = oneOf(a.dice, rejected, rejected, refused, kills)
	}
}

func (a *author) send(at time.Duration, body string) {
	a.list = append(a.list, Arrival{At: at, Message: queue.Outgoing{Body: body}})
}

// join packs some consecutive events into one message with an envelope.
func (a *author) join() {
	if !a.chance(0.4) {
		return
	}
	InOrder(a.list)
	var out []Arrival
	for i := 0; i < len(a.list); {
		n := 1
		if a.chance(0.3) {
			n = min(2+a.IntN(2), len(a.list)-i)
		}
		if a.more > 0 && a.list[i+n-1].At > a.list[i].At+time.Minute {
			n = 1 // an upstream does not wait for hours to fill a message
		}
		var bodies []string
		for _, one := range a.list[i : i+n] {
			bodies = append(bodies, one.Message.Body)
		}
		i += n
		out = append(out, Arrival{At: a.list[i-1].At, Message: queue.Outgoing{Body: envelope(bodies)}})
	}
	a.list = out
}

// envelope puts several events into one message. A single event needs no envelope.
func envelope(bodies []string) string {
	if len(bodies) == 1 {
		return bodies[0]
	}
	var parts []string
	for _, b := range bodies {
		parts = append(parts, fmt.Sprintf(`{"basicProperties":{},"data":%q}`,
			base64.StdEncoding.EncodeToString([]byte(b))))
	}
	return `{"rmqMessagesByQueue":{"changes::/":[` + strings.Join(parts, ",") + `]}}`
}

// heal removes the poison of versions. Without all, it removes only poison that keeps a document
// waiting for its dead deadline.
func (w *World) heal(all bool) {
	for v, p := range w.poisons {
		if all || p == kills {
			delete(w.poisons, v)
		}
	}
}
