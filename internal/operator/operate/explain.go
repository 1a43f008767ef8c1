// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// Explanation is everything known about a document, with one sentence that sums it up.
type Explanation struct {
	Key       shard.DocID      `json:"key"`
	Sink      string           `json:"sink"`
	State     State            `json:"state"`
	Listed    State            `json:"listed"`           // the state in a list, which asks no sink
	Wait      *Wait            `json:"wait,omitempty"`   // why the document is not fresh; nil if it waits for nothing
	Known     bool             `json:"known"`            // the sink or another place has something about the document
	Row       map[string]any   `json:"row"`              // order keys in print, times as text
	InSink    string           `json:"in_sink"`          // the version in the sink, "" for none, "unknown: why"
	Committed string           `json:"committed"`        // order key in print
	Pending   string           `json:"pending"`          // order key in print
	Version   string           `json:"version"`          // the committed version, for people
	Flight    string           `json:"flight,omitempty"` // the flight that holds the pending version
	Quiet     time.Duration    `json:"quiet_ns"`         // the setting of the document's collection
	MaxWait   time.Duration    `json:"max_wait_ns"`
	Pace      time.Duration    `json:"min_interval_ns"`
	Held      []Held           `json:"held,omitempty"`      // the messages of that flight that are about the document
	Scheduled []ScheduledEvent `json:"scheduled,omitempty"` // the events that wait for their time
	Letters   []Letter         `json:"dead_letters,omitempty"`
	Decisions []Decision       `json:"decisions,omitempty"` // the latest ones, if the stack keeps them
	Sentence  string           `json:"sentence"`
	// Others are the explanations for the other sinks of the collection, if the key names no sink.
	Others []Explanation `json:"others,omitempty"`
}

// ScheduledEvent is an event that waits for its time.
type ScheduledEvent struct {
	Version   string    `json:"version"`
	OrderKey  string    `json:"order_key"`
	NotBefore time.Time `json:"not_before"`
	MessageID string    `json:"message_id"`
}

// Held is a message that waits in a flight.
type Held struct {
	MessageID string    `json:"message_id"`
	Version   string    `json:"version"`
	OrderKey  string    `json:"order_key"`
	Operation string    `json:"operation"` // put or delete
	Lane      string    `json:"lane"`
	Sent      time.Time `json:"sent_at,omitzero"`
	Due       time.Time `json:"due_at,omitzero"`
	Receives  int       `json:"receives"` // how often the message was received
}

// Decision is one line of the timeline.
type Decision struct {
	At      time.Time    `json:"at"`
	Step    string       `json:"step"`
	Text    string       `json:"text"`
	Decided journal.Step `json:"decided,omitempty"` // the step as a constant, for programs
	Version string       `json:"version,omitempty"` // the version that the decision is about, for people
	Message string       `json:"message_id,omitempty"`
	Sent    time.Time    `json:"sent_at,omitzero"`  // when the message was sent
	Until   time.Time    `json:"until_at,omitzero"` // a due time, or the end of a wait
}

// explainer explains documents.
type explainer struct {
	engines
	manifests
	plans
	parked
	depths

	History func(ctx context.Context, doc shard.DocID) ([]Decision, error) // nil if the stack keeps no decisions
}

// sinkPatience is how long Explain waits for the sink. An operator's machine may be unable to reach
// the sink, and the row says more than the sink.
const sinkPatience = 5 * time.Second

// Explain gathers row, sink, dead letters, schedule and decisions, and sums them up in one state
// and sentence. If the key names no sink, it explains the document in each sink of its collection.
func (o *explainer) Explain(ctx context.Context, key shard.DocID) (Explanation, error) {
	rows, err := o.rows(key)
	if err != nil {
		return Explanation{}, err
	}
	all := make([]Explanation, len(rows))
	for i, row := range rows {
		if all[i], err = o.explain(ctx, row); err != nil {
			return Explanation{}, fmt.Errorf("explain %s: %w", row, err)
		}
	}
	all[0].Others = all[1:]
	return all[0], nil
}

func (o *explainer) explain(ctx context.Context, key shard.DocID) (x Explanation, err error) {
	name := o.Config.SinkOf(key)
	e := o.evidence(key)
	if err := o.look(ctx, key, name, &e); err != nil {
		return x, err
	}
	if e.letters, err = o.lettersOf(ctx, key, ""); err != nil {
		return x, err
	}
	if e.held, err = o.held(ctx, e.row); err != nil {
		return x, err
	}
	planned, _, err := o.scheduled(ctx, key)
	if err != nil {
		return x, err
	}
	for _, p := range planned {
		// An event that is not newer than the committed version will be stale when its time comes.
		if k, err := shard.ParseOrderKey(p.OrderKey); err == nil && k > e.row.Committed {
			e.planned = append(e.planned, p)
		}
	}
	e.at(shard.MicrosOf(o.Clock.Now()), o.Config.Retry)
	if e.away || !e.row.Exists() || !e.putOff.IsZero() {
		e.undecoded, _ = o.waiting(ctx, name, "") // without the count if the queues cannot be read
	}
	e.ahead = o.farAhead(e.row.Committed, e.now.Time())
	x = Explanation{
		Key: key, Sink: name, Row: Readable(e.row),
		Committed: e.row.Committed.String(), Pending: e.row.Pending.String(),
		Version: e.row.Committed.VersionText(), Flight: e.row.Flight, InSink: e.sink.version, Held: e.held,
		Scheduled: planned, Letters: e.letters, Quiet: e.timing.Quiet, MaxWait: e.timing.MaxWait,
		Pace: e.timing.MinInterval,
	}
	if e.sink.why != "" {
		x.InSink = "unknown: " + e.sink.why
	}
	if o.History != nil {
		if x.Decisions, err = o.History(ctx, key); err != nil {
			return x, fmt.Errorf("read its history: %w", err)
		}
	}
	e.decisions = x.Decisions
	x.State, x.Sentence = e.verdict()
	x.Listed, x.Wait = e.listed(), e.wait(x.State)
	x.Known = x.State != StateNobody
	return x, nil
}

// looks is how often Explain asks the sink, if the row changes each time.
const looks = 3

// look reads the row before and after it asks the sink, until both rows are equal. So the row and
// the sink's answer belong to the same moment.
func (o *explainer) look(ctx context.Context, key shard.DocID, sink string, e *evidence) error {
	read := func() (shard.Row, error) {
		rows, err := o.Shards.Read(ctx, []shard.DocID{key, shard.HealthRow(sink)}, shard.Consistent)
		if err != nil {
			return shard.Row{}, err
		}
		e.health = rows[1]
		return rows[0], nil
	}
	row, err := read()
	for range looks {
		if err != nil {
			return err
		}
		e.row, e.sink = row, o.askSink(ctx, row, key, sink)
		if row, err = read(); err == nil && row == e.row {
			return nil
		}
	}
	e.row, e.sink = row, sinkAnswer{why: "its row changed each time"}
	return err
}

// askSink reads the document back from the sink. If the sink cannot be asked, the answer says why,
// and the explanation is made without the sink.
func (o *explainer) askSink(ctx context.Context, row shard.Row, key shard.DocID, name string) sinkAnswer {
	r, err := o.reader(name)
	if err != nil {
		return sinkAnswer{why: o.hinted(err).Error()}
	}
	patient, cancel := context.WithTimeout(ctx, sinkPatience)
	defer cancel()
	s, found, err := r.Get(patient, key.Plain())
	a := sinkAnswer{found: found, version: s.Version, at: s.Indexed}
	if err == nil && found {
		a.bytes, err = o.looker(name).Bytes(patient, row, s)
	}
	if err != nil {
		return sinkAnswer{why: o.hinted(err).Error()}
	}
	if k, err := shard.ParseOrderKey(s.Key); err == nil {
		a.key = k
	} else if found && a.version == "" {
		a.version = "not lull's"
	}
	return a
}

// held lists the messages about the row's document in the row's flight, newest version first. The
// list is empty if the flight has ended.
func (o *explainer) held(ctx context.Context, row shard.Row) ([]Held, error) {
	if row.Flight == "" || row.Pending == "" {
		return nil, nil
	}
	m, err := o.manifest(ctx, flight.ID(row.Flight))
	if err != nil {
		return nil, fmt.Errorf("get the manifest: %w", err)
	}
	var out []Held
	for r, e := range m.Entries() {
		if e.Doc == row.Doc {
			held := m.Records[r].Message
			out = append(out, Held{
				MessageID: held.ID, Version: e.Key.VersionText(), OrderKey: e.Key.String(), Operation: string(e.Op),
				Lane: string(m.Lane), Sent: held.Sent, Due: e.Due.Time(), Receives: held.ReceiveCount,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Held) int { return strings.Compare(b.OrderKey, a.OrderKey) })
	return out, nil
}

// Readable converts a row for people: order keys in print, and times as text.
func Readable(r shard.Row) map[string]any {
	out := map[string]any{}
	for _, a := range shard.Attrs() {
		v, ok := r.Get(a)
		switch {
		case !ok:
		case a == shard.AttrContent:
			out["content"] = hex.EncodeToString([]byte(v.Text))
		case v.Kind == shard.KindKeySet:
			var keys []string
			for _, k := range shard.KeySet(v.Text).Keys() {
				keys = append(keys, k.String())
			}
			out[string(a)] = keys
		case v.Kind == shard.KindBinary:
			out[string(a)] = shard.OrderKey(v.Text).String()
		case a == shard.AttrBurstStart || a == shard.AttrLeaseUntil || a == shard.AttrLastWrite:
			out[string(a)] = shard.Micros(v.Num).Time()
		case a == shard.AttrExpiresAt:
			out[string(a)] = time.Unix(v.Num, 0).UTC()
		case v.Kind == shard.KindNumber:
			out[string(a)] = v.Num
		default:
			out[string(a)] = v.Text
		}
	}
	return out
}
