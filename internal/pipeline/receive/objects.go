// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/fanout"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
)

const (
	// maxObjects is the number of objects that are read in parallel. Each takes a few megabytes of
	// memory.
	maxObjects = 4
	// objectPace is a number of seconds. One slice of an object has at most the lines that
	// PerSecond allows in that time.
	objectPace = 20
	// lineRoom is the number of bytes that a message needs besides its line. These bytes are for
	// attributes: one attribute contains the object's key.
	lineRoom = 8 << 10
	// partDelay is the shortest delay of the message that continues the reading. After that delay,
	// the row already counts the part before it.
	partDelay = 2 * time.Second
)

// object is an object of many documents that a message names.
type object struct {
	pending
	*event.Object
}

func (o *object) url() string { return queue.ObjectURL(o.Bucket, o.Key) }

// readEnd is what this invocation did with an object.
type readEnd struct {
	// If the last two fields are empty, the event is done, and its note has the first three fields.
	step   journal.Step
	detail string
	count  int
	letter string // why the event becomes a dead letter
	failed string // why the message must be received again
}

// objectReader continues to read the objects that the batch names (ADR 0053): one slice of each,
// while there is time. The object's row records how far the object was read. The message only
// triggers the next slice. After each slice, another message that continues replaces it.
type objectReader struct {
	*invocation
	table        rows.Table
	open         objects.Open
	bulk, ingest queue.Queue
}

// read reads a slice of each object. It returns the objects that become dead letters.
func (r objectReader) read(ctx context.Context, found []object) (dead faults) {
	if len(found) == 0 {
		return nil
	}
	ctx, cancel := r.until(ctx, objectShare)
	defer cancel()
	became := fanout.Map(r.parallel, maxObjects, found, func(o object) readEnd { return r.readObject(ctx, &o) })
	for i := range found {
		o, e := &found[i], became[i]
		switch {
		case e.failed != "":
			r.fail(&o.pending, e.failed)
		case e.letter != "":
			dead.add(&o.pending, deadletter.Payload, e.letter+": "+o.url())
		default:
			n := o.about(e.step, e.detail+": "+o.url())
			n.Count = e.count
			r.complete(&o.pending, n)
		}
	}
	return dead
}

func (r objectReader) readObject(ctx context.Context, o *object) readEnd {
	if r.open == nil {
		return readEnd{failed: "this program reads no objects"}
	}
	if r.late() {
		return readEnd{failed: "no time is left to read the object"}
	}
	at, err := r.table.One(ctx, shard.ObjectRow(r.sink, o.Bucket, o.Key), shard.Consistent)
	if err != nil {
		return readEnd{failed: "read how far the object was read: " + err.Error()}
	}
	p, over := r.begin(o, at)
	if over != nil && over.step == journal.Stale {
		return r.stale(ctx, o, p, *over)
	}
	if over != nil {
		return *over
	}
	next, err := r.slice(ctx, o, p)
	switch {
	case errors.Is(err, objects.ErrReplaced):
		return readEnd{step: journal.Skipped, detail: "a newer object has replaced it"}
	case objects.Final(err) && next.Text == p.Text:
		letter := fmt.Sprintf("%v, behind %d lines", err, p.Lines)
		if bad := p.Problem(); bad != "" {
			letter += "; " + bad
		}
		return readEnd{letter: letter}
	case err != nil && next.Text == p.Text && next.At.From == p.At.From:
		return readEnd{failed: "read the object: " + backoff.Class(err)}
	}
	return r.advance(ctx, o, at, p.Sent, next)
}

// begin returns how far the object was read, or how the message ends without reading.
func (r objectReader) begin(o *object, row shard.Row) (objects.Progress, *readEnd) {
	if row.Foreign() {
		r.note(o.about(journal.Schema, "object row"))
		return objects.Progress{}, &readEnd{failed: "the object's row has a newer schema"}
	}
	p, err := objects.Parse(row.Cursor)
	if err != nil {
		return p, &readEnd{failed: err.Error()}
	}
	m := o.msg
	next, err := objects.Decide(p, o.Version, queue.PartOf(m.Attributes), row.RanAt, r.now())
	if err != nil {
		return p, &readEnd{letter: err.Error()}
	}
	if next == objects.Begin {
		return objects.Progress{
			Version: o.Version, ETag: o.ETag, Bytes: o.Bytes, Begun: r.now(), TakenBack: p.TakenBack,
			Written: shard.MicrosOf(cmp.Or(o.Written, m.FirstSent())),
		}, nil
	}
	became, ends := map[objects.Next]readEnd{
		objects.Passed:     {step: journal.Duplicate, detail: "another message continues the reading"},
		objects.Superseded: {step: journal.Stale, detail: "a newer object has replaced it"},
		objects.WasAborted: {step: journal.Skipped, detail: "aborted by " + p.Aborted},
		objects.WasReset:   {step: journal.Skipped, detail: "an operator reset the object's sequencer"},
		objects.ReadBefore: {step: journal.Duplicate, detail: "read before", letter: p.Problem()},
	}[next]
	if ends {
		return p, &became
	}
	return p, nil
}

// stale handles an object whose sequencer is older than the sequencer in the row. S3 has one object
// at a place. If the bucket has this object, and another object was read, the row's sequencer is
// wrong and may be forged. Without a dead letter, operators would not see that objects are skipped.
func (r objectReader) stale(ctx context.Context, o *object, p objects.Progress, over readEnd) readEnd {
	if o.ETag == "" || o.ETag == p.ETag {
		return over
	}
	in, err := r.open(ctx, o.Bucket, o.Key, o.ETag, 0)
	switch {
	case err == nil:
		_ = in.Close() // it only matters that the object exists
		return readEnd{letter: "a later sequencer was read at this place, but the bucket has this object: " +
			"use `lull object --reset`, then redrive"}
	case errors.Is(err, objects.ErrReplaced), objects.Final(err):
		return over
	}
	return readEnd{failed: "compare the object with the bucket: " + backoff.Class(err)}
}

// slice reads the next part of the object, for a part of the invocation's time, and sends the lines
// of that part.
func (r objectReader) slice(ctx context.Context, o *object, p objects.Progress) (objects.Progress, error) {
	in, err := r.open(ctx, o.Bucket, o.Key, p.ETag, p.At.From)
	if err != nil {
		return p, err
	}
	defer in.Close()
	return objects.Read(in, p, objects.Limits{
		Lines: int64(o.PerSecond) * objectPace, Stop: r.late, MaxLine: queue.MaxBytes - lineRoom, MaxText: o.MaxText,
	}, func(lines []objects.Line) (map[int]string, error) { return r.sendLines(ctx, o, p, lines) })
}

// sendLines sends lines as messages of their source. After a crash a line may be sent twice, with
// the same order keys.
func (r objectReader) sendLines(ctx context.Context, o *object, p objects.Progress, lines []objects.Line,
) (map[int]string, error) {
	m := o.msg
	keep := map[string]queue.Attribute{
		queue.AttrSource: queue.Text(o.Source),
		// A line is as old as its object, because a late line must not arrive after the row that
		// may refuse it was deleted.
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
	for i, err := range r.bulk.Send(ctx, out) {
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

// advance records in the row how far the object was read. Before that, it sends the message that
// continues the reading. So each part that the row counts has a message.
func (r objectReader) advance(ctx context.Context, o *object, was shard.Row, sent int64, p objects.Progress) readEnd {
	p.Part++
	if !p.Done {
		if failed := r.sendNext(ctx, o, p.Part, p.Sent-sent); failed != nil {
			return *failed
		}
	}
	now := max(r.now(), was.RanAt+1)
	w := shard.Advance(was.Doc, was.RanAt, now, p.String(), r.config.Lifecycle.Expires(r.start))
	_, err := r.table.Write(ctx, w)
	if row, refused := shard.AsRefused(err); refused && (row.Row.RanAt != now || row.Row.Cursor != p.String()) {
		r.note(o.about(journal.RowRefused, w.Transition.String()))
		return readEnd{failed: "another invocation has read more of the object"}
	} else if err != nil && !refused {
		return readEnd{failed: "ADVANCE: " + err.Error()}
	}
	e := readEnd{
		step: journal.ObjectRead, count: int(p.Sent - sent),
		detail: fmt.Sprintf("%d lines, %d bytes of text", p.Lines, p.Text),
	}
	if p.Done {
		e.step, e.letter = journal.ObjectDone, p.Problem()
	}
	return e
}

// sendNext sends the message that continues the reading. It is a copy of the present message.
func (r objectReader) sendNext(ctx context.Context, o *object, part int, sent int64) *readEnd {
	m := o.msg
	attrs := queue.With(o.copied(), queue.AttrPart, queue.Text(strconv.Itoa(part)))
	out, err := deadletter.Copy(m.Body, attrs, m.FirstSent(), r.pause(o, sent))
	if err != nil {
		return &readEnd{letter: "a message that continues the reading has no room: " + err.Error()}
	}
	if err := queue.ErrorAt(r.ingest.Send(ctx, []queue.Outgoing{out}), 0); err != nil {
		return &readEnd{failed: "send the message that continues the reading: " + err.Error()}
	}
	return nil
}

// pause returns the delay of the next message. With this delay, reading keeps the pace of PerSecond
// lines.
func (r objectReader) pause(o *object, sent int64) time.Duration {
	due := r.start.Add(time.Duration(sent) * time.Second / time.Duration(o.PerSecond))
	return min(max(due.Sub(r.clock.Now()), partDelay), objectPace*time.Second)
}
