package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/letter"
	"github.com/lullhq/lull/internal/shard"
)

// Explain gathers row, sink, letters and decisions, and ends in one sentence.
func (o *Operator) Explain(ctx context.Context, key shard.DocID) (Explanation, error) {
	name, _ := o.Config.SinkFor(string(key.Collection()))
	rows, err := o.Shards.Read(ctx, []shard.DocID{key, shard.HealthRow(name)}, shard.Consistent)
	if err != nil {
		return Explanation{}, fmt.Errorf("explain %s: %w", key, err)
	}
	row, health := rows[0], rows[1]
	x := Explanation{
		Key: key, Row: Readable(row), Committed: row.Committed.String(), Pending: row.Pending.String(), Version: versionText(row.Committed),
		Flight: row.Flight,
	}
	if o.Readers[name] != nil {
		switch d, err := o.Get(ctx, key); {
		case err == nil:
			x.InSink = d.Version
		case !errors.Is(err, ErrNotFound):
			x.InSink = "unknown: " + err.Error()
		}
	}
	if x.Letters, err = o.Letters(ctx, LetterFilter{Key: key}); err != nil {
		return Explanation{}, fmt.Errorf("explain %s: %w", key, err)
	}
	if o.History != nil {
		x.Decisions = o.History(key)
	}
	x.Sentence = sentence(row, health, x.Letters, shard.MicrosOf(o.Clock.Now()), o.Config.Timing(key.Collection()))
	return x, nil
}

// sentence says why the document is as fresh as it is.
func sentence(r, health shard.Row, letters []Letter, now shard.Micros, t shard.Timing) string {
	k := r.Pending
	switch {
	case !r.Exists() && len(letters) > 0:
		return fmt.Sprintf("Nothing was ever committed; its only events are %d dead letters, the last for %s.", len(letters), letters[len(letters)-1].Reason)
	case !r.Exists():
		return "No event of this document was ever judged, or its row was collected after the retention of rows."
	case r.Foreign():
		return "Its row has a newer schema than this program: update lull."
	case k == "" || k <= r.Committed:
		return settledSentence(r, letters)
	}
	v := versionText(k)
	switch {
	case r.Leased(now):
		return fmt.Sprintf("Version %s is being written: the lease runs until %s.", v, clockText(r.LeaseUntil))
	case health.OpenUntil != 0:
		return fmt.Sprintf("Version %s waits for the sink, which is unwell: nothing is claimed before %s.", v, clockText(health.OpenUntil))
	case r.Claimed > k:
		return fmt.Sprintf("Version %s waits because version %s was claimed, got no answer and may be in the sink: redrive its dead letter first.", v, versionText(r.Claimed))
	case r.Attempts > 0:
		return fmt.Sprintf("Version %s was claimed %d times without an answer; it is tried again in smaller groups.", v, r.Attempts)
	case r.Refusals > 0:
		return fmt.Sprintf("Version %s was refused by the sink %d times (%s); it is tried again after a back-off.", v, r.Refusals, r.LastError)
	}
	waited := now.Sub(r.BurstStart)
	if waited > t.MaxWait+t.CapGrace+time.Minute {
		return fmt.Sprintf("Version %s has been pending for %s, longer than the cap of %s: its message will be received again when its visibility ends; see `lull status`.",
			v, waited.Round(time.Second), t.MaxWait)
	}
	return fmt.Sprintf("Version %s waits for the lull: %s into its burst; written %s after the last change, at the latest %s after the first.",
		v, waited.Round(100*time.Millisecond), t.Quiet, t.MaxWait)
}

func settledSentence(r shard.Row, letters []Letter) string {
	for _, l := range letters {
		k, err := shard.ParseOrderKey(l.OrderKey)
		if err == nil && k > r.Committed && l.State == letter.Parked {
			if r.Committed == "" {
				return fmt.Sprintf("Nothing is in the sink: version %s is a dead letter (%s), and no good version was held.", l.Version, l.Reason)
			}
			return fmt.Sprintf("Version %s is in the sink; the newer version %s is a dead letter (%s): mend the cause and `lull dead redrive`.",
				versionText(r.Committed), l.Version, l.Reason)
		}
	}
	if r.Committed == "" {
		return "Nothing is committed and nothing is pending: its version is a dead letter that was dropped."
	}
	what := "is in the sink"
	if r.CommittedOp == shard.Delete {
		what = "deleted it"
	}
	return fmt.Sprintf("It is fresh: version %s %s since %s, and nothing newer is known.", versionText(r.Committed), what, clockText(r.LastWrite))
}

func clockText(m shard.Micros) string { return m.Time().Format("2006-01-02T15:04:05.000Z07:00") }

func versionText(k shard.OrderKey) string {
	p, err := k.Parts()
	if err != nil {
		return ""
	}
	return p.Version.Text()
}

// Readable is a row with order keys in print and times as text.
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
