package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/shard"
)

// sinkPatience is how long Explain waits for the sink, which an operator may not reach. The row
// says more than the sink.
const sinkPatience = 5 * time.Second

// Explain gathers row, sink, dead letters and decisions, and ends in one sentence.
func (o *Operator) Explain(ctx context.Context, key shard.DocID) (Explanation, error) {
	name, _ := o.Config.SinkFor(string(key.Collection()))
	rows, err := o.Shards.Read(ctx, []shard.DocID{key, shard.HealthRow(name)}, shard.Consistent)
	if err != nil {
		return Explanation{}, fmt.Errorf("explain %s: %w", key, err)
	}
	row, health := rows[0], rows[1]
	x := Explanation{
		Key: key, Row: Readable(row), Committed: row.Committed.String(), Pending: row.Pending.String(),
		Version: row.Committed.VersionText(),
		Flight:  row.Flight,
	}
	if o.Readers[name] != nil {
		patient, cancel := context.WithTimeout(ctx, sinkPatience)
		defer cancel()
		switch d, err := o.Get(patient, key); {
		case err == nil:
			x.InSink = d.Version
		case !errors.Is(err, ErrNotFound):
			x.InSink = "unknown: " + err.Error()
		}
	}
	if x.Letters, err = o.Letters(ctx, LetterFilter{Key: key}); err != nil {
		return Explanation{}, fmt.Errorf("explain %s: %w", key, err)
	}
	if x.Held, err = o.held(ctx, row); err != nil {
		return Explanation{}, fmt.Errorf("explain %s: %w", key, err)
	}
	if o.History != nil {
		if x.Decisions, err = o.History(ctx, key); err != nil {
			return Explanation{}, fmt.Errorf("explain %s: read its history: %w", key, err)
		}
	}
	x.Known = row.Exists() || len(x.Letters) > 0
	x.Sentence = sentence(row, health, x.Letters, shard.MicrosOf(o.Clock.Now()), o.Config.Timing(key.Collection()))
	return x, nil
}

// held lists the messages about the row's document in its flight, newest version first: none where
// the flight has ended.
func (o *Operator) held(ctx context.Context, row shard.Row) ([]Held, error) {
	if row.Flight == "" || row.Pending == "" {
		return nil, nil
	}
	m, err := o.Flights.Get(ctx, flight.ID(row.Flight))
	if errors.Is(err, flight.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the manifest: %w", err)
	}
	var out []Held
	for _, r := range m.Records {
		for _, e := range r.Events {
			if e.Doc != row.Doc {
				continue
			}
			out = append(out, Held{
				MessageID: r.Message.ID, Version: e.Key.VersionText(), OrderKey: e.Key.String(),
				Operation: string(e.Op),
				Lane:      string(m.Lane),
				Sent:      r.Message.Sent, Due: e.Due.Time(), Receives: r.Message.ReceiveCount,
			})
		}
	}
	slices.SortStableFunc(out, func(a, b Held) int { return strings.Compare(b.OrderKey, a.OrderKey) })
	return out, nil
}

// sentence says why the document is as fresh as it is.
func sentence(r, health shard.Row, letters []Letter, now shard.Micros, t shard.Timing) string {
	k := r.Pending
	switch {
	case !r.Exists() && len(letters) == 1:
		return fmt.Sprintf("Nothing was ever committed: its only event is a dead letter (%s).", letters[0].Reason)
	case !r.Exists() && len(letters) > 1:
		return fmt.Sprintf("Nothing was ever committed: its only events are %d dead letters, the last for %s.",
			len(letters), letters[len(letters)-1].Reason)
	case !r.Exists():
		return "No event of this document was ever judged, or its row was deleted after the retention of rows."
	case r.Foreign():
		return "Its row has a newer schema than this program: update lull."
	case k == "" || k <= r.Committed:
		return restingSentence(r, letters)
	}
	v := k.VersionText()
	switch {
	case r.Leased(now):
		return fmt.Sprintf("Version %s is being written: the lease runs until %s.", v, clockText(r.LeaseUntil))
	case health.OpenUntil != 0:
		return fmt.Sprintf("Version %s waits for the sink, which is unhealthy: nothing is claimed before %s.", v,
			clockText(health.OpenUntil))
	case r.Claimed > k:
		return fmt.Sprintf(
			"Version %s waits because version %s was claimed, got no answer and may be in the sink: redrive its dead "+
				"letter first.", v, r.Claimed.VersionText())
	case r.Attempts > 0:
		return fmt.Sprintf("Version %s was claimed %d times without an answer; it is retried in smaller groups.",
			v, r.Attempts)
	case r.Refusals > 0:
		return fmt.Sprintf("Version %s was refused by the sink %d times (%s); it is retried after a back-off.", v,
			r.Refusals, r.LastError)
	}
	waited := now.Sub(r.BurstStart)
	if waited > t.MaxWait+t.CapGrace+time.Minute {
		return fmt.Sprintf(
			"Version %s has been pending for %s, longer than the cap of %s: its message will be received again when "+
				"its visibility ends; see `lull status`.",
			v, waited.Round(time.Second), t.MaxWait)
	}
	return fmt.Sprintf(
		"Version %s waits for the lull: %s into its burst; written %s after the last change, at the latest %s after "+
			"the first.",
		v, waited.Round(100*time.Millisecond), t.Quiet, t.MaxWait)
}

// restingSentence is for a row that has nothing pending.
func restingSentence(r shard.Row, letters []Letter) string {
	newest := newestLetter(r, letters)
	switch {
	case newest == nil && r.Committed == "":
		return "Nothing is committed and nothing is pending: its version is a dead letter that was dropped."
	case newest == nil:
		what := "is in the sink"
		if r.CommittedOp == shard.Delete {
			what = "deleted it"
		}
		return fmt.Sprintf("It is fresh: version %s %s since %s, and nothing newer is known.", r.Committed.VersionText(),
			what, clockText(r.LastWrite))
	}
	now, then := "Nothing is in the sink",
		"an older good version follows by itself if one is held; otherwise fix the cause and `lull dead redrive`"
	if r.Committed != "" {
		now, then = fmt.Sprintf("Version %s is in the sink", r.Committed.VersionText()),
			"fix the cause and `lull dead redrive`"
		if r.CommittedOp == shard.Delete {
			now = fmt.Sprintf("It was deleted by version %s", r.Committed.VersionText())
		}
	}
	what := "the newer version"
	if r.Committed == "" {
		what = "version"
	}
	if newest.State == deadletter.Redriven {
		return fmt.Sprintf("%s; %s %s, a dead letter (%s), was redriven at %s and is judged when it is received.",
			now, what, newest.Version, newest.Reason,
			newest.Redriven.UTC().Format(clockLayout))
	}
	return fmt.Sprintf("%s; %s %s is a dead letter (%s): %s.", now, what, newest.Version, newest.Reason, then)
}

// newestLetter is the dead letter of the newest version above the committed one, nil for none.
func newestLetter(r shard.Row, letters []Letter) *Letter {
	var newest *Letter
	var key shard.OrderKey
	for i, l := range letters {
		if k, err := shard.ParseOrderKey(l.OrderKey); err == nil && k > r.Committed && k > key {
			newest, key = &letters[i], k
		}
	}
	return newest
}

const clockLayout = "2006-01-02T15:04:05.000Z07:00"

func clockText(m shard.Micros) string { return m.Time().Format(clockLayout) }

// Readable is a row for people: printed order keys, and times as text.
func Readable(r shard.Row) map[string]any {
	out := map[string]any{}
	for _, a := range shard.Attrs() {
		v, ok := r.Get(a)
		switch {
		case !ok:
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
