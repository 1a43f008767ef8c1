package receive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/backoff"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/fanout"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/objects"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

const (
	// maxObjects is how many objects are read beside each other. Each takes a few megabytes.
	maxObjects = 4
	// objectPace is for how many seconds of lines one slice of an object may have at most.
	objectPace = 20
	// lineRoom is what a message needs besides its line: attributes, among them one with the
	// object's key.
	lineRoom = 8 << 10
	// partDelay is how long the message that goes on waits at least: until its part is counted.
	partDelay = 2 * time.Second
)

// object is an object of many documents that a message names.
type object struct {
	pending
	*event.Object
}

func (o *object) url() string { return queue.ObjectURL(o.Bucket, o.Key) }

// ended is what became of it in this invocation.
type ended struct {
	step   journal.Step // where its event is done
	detail string
	count  int
	letter string // why it becomes a dead letter
	failed string // why it comes back
}

// readObjects reads on in the objects that the batch names (ADR 0053): a slice of each, while there
// is time. The row of the object's place is the referee of how far it was read, and the message is
// only the clock: it is replaced, slice by slice, by one that goes on.
func (b *batch) readObjects(ctx context.Context) {
	if len(b.objects) == 0 {
		return
	}
	ctx, cancel := b.until(ctx, objectShare)
	defer cancel()
	became := fanout.Map(b.h.Parallel, maxObjects, b.objects, func(o object) ended { return b.readObject(ctx, &o) })
	b.faults = nil // those so far are packed
	for i, e := range became {
		o := &b.objects[i]
		switch {
		case e.failed != "":
			b.fail(&o.pending, e.failed)
		case e.letter != "":
			b.letter(&o.pending, deadletter.Payload, e.letter+": "+o.url())
		default:
			b.state[o.msg].open--
			n := b.about(&o.pending, e.step, e.detail+": "+o.url())
			n.Count = e.count
			b.h.note(n)
		}
	}
	b.pack()
}

func (b *batch) readObject(ctx context.Context, o *object) ended {
	if b.h.Objects == nil {
		return ended{failed: "this program reads no objects"}
	}
	if b.late() {
		return ended{failed: "no time is left to read the object"}
	}
	at, err := b.rows().One(ctx, shard.ObjectRow(b.h.Sink, o.Bucket, o.Key), shard.Consistent)
	if err != nil {
		return ended{failed: "read how far the object was read: " + err.Error()}
	}
	p, over := b.begin(o, at)
	if over != nil {
		return *over
	}
	next, err := b.slice(ctx, o, p)
	switch {
	case errors.Is(err, objects.ErrReplaced):
		return ended{step: journal.Skipped, detail: "a newer object has taken its place"}
	case objects.Final(err) && next.Text == p.Text:
		letter := fmt.Sprintf("%v, behind %d lines", err, p.Lines)
		if bad := p.Problem(); bad != "" {
			letter += "; " + bad
		}
		return ended{letter: letter}
	case err != nil && next.Text == p.Text && next.At.From == p.At.From:
		return ended{failed: "read the object: " + backoff.Class(err)}
	}
	return b.advance(ctx, o, at, p.Sent, next)
}

// late reports whether nothing new is to be begun.
func (b *batch) late() bool {
	return b.h.Clock.Now().Sub(b.start) >= b.h.Config.Receive.Timeout*stopShare/8
}

// begin is how far the object was read, or what becomes of the message without reading.
func (b *batch) begin(o *object, row shard.Row) (objects.Progress, *ended) {
	if row.Foreign() {
		b.h.note(b.about(&o.pending, journal.Schema, "object row"))
		return objects.Progress{}, &ended{failed: "the object's row has a newer schema"}
	}
	p, err := objects.Parse(row.Cursor)
	if err != nil {
		return p, &ended{failed: err.Error()}
	}
	m := &b.msgs[o.msg]
	next, err := objects.Decide(p, o.Version, queue.PartOf(m.Attributes), row.RanAt, b.now())
	if err != nil {
		return p, &ended{letter: err.Error()}
	}
	if next == objects.Begin {
		return objects.Progress{
			Version: o.Version, ETag: o.ETag, Bytes: o.Bytes, Begun: b.now(),
			Written: shard.MicrosOf(cmp.Or(o.Written, m.FirstSent())),
		}, nil
	}
	became, ends := map[objects.Next]ended{
		objects.Passed:     {step: journal.Duplicate, detail: "another message reads on"},
		objects.Superseded: {step: journal.Stale, detail: "a newer object has taken its place"},
		objects.WasAborted: {step: journal.Skipped, detail: "aborted by " + p.Aborted},
		objects.ReadBefore: {step: journal.Duplicate, detail: "read before", letter: p.Problem()},
	}[next]
	if ends {
		return p, &became
	}
	return p, nil
}

// slice reads on, for a part of the invocation's time, and sends the lines.
func (b *batch) slice(ctx context.Context, o *object, p objects.Progress) (objects.Progress, error) {
	in, err := b.h.Objects(ctx, o.Bucket, o.Key, p.ETag, p.At.From)
	if err != nil {
		return p, err
	}
	defer in.Close()
	return objects.Read(in, p, objects.Limits{
		Lines: int64(o.PerSecond) * objectPace, Stop: b.late, MaxLine: queue.MaxBytes - lineRoom, MaxText: o.MaxText,
	}, func(lines []objects.Line) (map[int]string, error) { return b.sendLines(ctx, o, p, lines) })
}

// sendLines sends lines as messages of their source. They may be sent twice, after a crash: their
// order keys are the same then.
func (b *batch) sendLines(ctx context.Context, o *object, p objects.Progress, lines []objects.Line) (map[int]string,
	error,
) {
	m := &b.msgs[o.msg]
	keep := map[string]queue.Attribute{
		queue.AttrSource: queue.Text(o.Source),
		// A line is as old as its object: one that comes late must not outlive what may refuse it.
		queue.AttrFirstSent: queue.FirstSent(m.FirstSent()),
	}
	for _, name := range []string{queue.AttrGroup, queue.AttrTrace} {
		if a, ok := m.Attributes[name]; ok {
			keep[name] = a
		}
	}
	out := make([]queue.Outgoing, len(lines))
	of := queue.Line{Written: p.Written.Time(), Object: queue.ObjectURL(o.Bucket, o.Key)}
	for i, l := range lines {
		of.Number, of.Offset = l.Number, l.Offset
		out[i] = queue.Outgoing{Body: l.Text, Attributes: queue.With(keep, queue.AttrLine, queue.Text(of.Text()))}
	}
	bad := map[int]string{}
	for i, err := range b.h.Bulk.Send(ctx, out) {
		switch {
		case err == nil:
		case backoff.Final(err) && ctx.Err() == nil:
			bad[i] = "is refused by the queue: " + err.Error()
		default:
			return nil, fmt.Errorf("send lines: %w", err)
		}
	}
	return bad, nil
}

// advance has the row know how far the object was read. The message that goes on is stored before:
// where the row counts a part, somebody has one of it.
func (b *batch) advance(ctx context.Context, o *object, was shard.Row, sent int64, p objects.Progress) ended {
	p.Part++
	if !p.Done {
		if failed := b.goOn(ctx, o, p.Part, p.Sent-sent); failed != nil {
			return *failed
		}
	}
	now := max(b.now(), was.RanAt+1)
	w := shard.Advance(was.Doc, was.RanAt, now, p.String(), b.h.Config.Expires(b.start))
	_, err := b.rows().Write(ctx, w)
	if r, refused := shard.AsRefused(err); refused && (r.Row.RanAt != now || r.Row.Cursor != p.String()) {
		b.h.note(b.about(&o.pending, journal.RowRefused, w.Transition.String()))
		return ended{failed: "somebody else has read on in the object"}
	} else if err != nil && !refused {
		return ended{failed: "ADVANCE: " + err.Error()}
	}
	e := ended{
		step: journal.ObjectRead, count: int(p.Sent - sent),
		detail: fmt.Sprintf("%d lines, %d bytes of text", p.Lines, p.Text),
	}
	if p.Done {
		e.step, e.letter = journal.ObjectDone, p.Problem()
	}
	return e
}

// goOn sends the message that reads on: a copy of this one.
func (b *batch) goOn(ctx context.Context, o *object, part int, sent int64) *ended {
	m := &b.msgs[o.msg]
	attrs := queue.With(b.attributes(&o.pending), queue.AttrPart, queue.Text(strconv.Itoa(part)))
	out, err := deadletter.Copy(m.Body, attrs, m.FirstSent(), b.pause(o, sent))
	if err != nil {
		return &ended{letter: "a message that reads on has no room: " + err.Error()}
	}
	if err := queue.ErrorAt(b.h.Ingest.Send(ctx, []queue.Outgoing{out}), 0); err != nil {
		return &ended{failed: "send the message that reads on: " + err.Error()}
	}
	return nil
}

// pause keeps the pace: so many lines may have taken so long.
func (b *batch) pause(o *object, sent int64) time.Duration {
	due := b.start.Add(time.Duration(sent) * time.Second / time.Duration(o.PerSecond))
	return min(max(due.Sub(b.h.Clock.Now()), partDelay), objectPace*time.Second)
}
