// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// The wide runs have the failures of swarm, and some parts that other runs leave out. Wide runs
// have more documents and collections, a second sink, and tenants. Some last for days, have
// payloads that are objects, or have clocks that are wrong or set. Some have other builds of lull,
// or manifests that are deleted. Operators restore, purge, reset, and use SQS's own redrive. The
// seed decides which parts a run has, so that all combinations occur.

// breadth lists the additional parts of a wide run.
type breadth struct {
	d      dice
	days   bool
	second bool // whether there is a second sink
	refers bool
	absurd bool // an absurd version is sent, and taken back
	shape  shape
}

func widthOf(seed uint64) *breadth {
	b := &breadth{d: newDice(seed, 0x77696465)}
	b.days, b.second, b.refers = b.d.chance(0.04), b.d.chance(0.3), b.d.chance(0.1)
	if b.second {
		b.refers = false // the event of a removed object must not arrive in the wrong queue
		b.shape.collections = []string{"news", "people"}
	}
	if !b.days && b.d.chance(0.04) {
		b.shape.docs, b.shape.resync = 20+b.d.IntN(40), b.d.chance(0.5)
	}
	if b.d.chance(0.2) {
		b.shape.tenants = 1 + b.d.IntN(4)
	}
	if b.days {
		b.shape.more, b.shape.over = 1+b.d.IntN(3), time.Duration(b.d.logUniform(3, 80)*float64(time.Hour))
	}
	return b
}

// settings returns the settings of [vary] with the parts of the breadth.
func (b *breadth) settings(t testing.TB, seed uint64) *config.Config {
	return settings(t, seed%2 == 0, func(cfg *config.Config) {
		vary(seed, cfg)
		if b.second {
			versions := b.d.chance(0.5)
			cfg.Sinks["archive"] = config.Sink{Kind: "memory", Versions: &versions}
			cfg.DefaultSink = "search"
			cfg.Collections = map[string]config.Collection{
				"content": {}, "news": {Sink: "archive"}, "people": {Sink: oneOf(b.d, "archive", "search")},
			}
			cfg.DefaultCollection = "content"
		}
		if b.refers {
			cfg.Payload.Allow = []config.BucketPrefix{{Bucket: "open"}}
			cfg.Payload.MissingWait = time.Minute
		}
		if b.d.chance(0.2) {
			cfg.Lifecycle.DriftSample, cfg.Lifecycle.PruneEvery = 20, time.Minute
		}
		if newDice(seed, 0x656e7269).chance(0.2) {
			enrichAll(cfg)
		}
		if b.days { // so that rows are deleted within the time of the run
			cfg.Lifecycle.PruneEvery = 10 * time.Minute
			cfg.Queues.Retention, cfg.Queues.DeadLetterRetention = 20*time.Hour, 22*time.Hour
			cfg.Lifecycle.RedriveSpan, cfg.Lifecycle.ProducerLateness = 3*time.Hour, 3*time.Hour
			cfg.Lifecycle.RowRetention = 48 * time.Hour
			cfg.Lifecycle.TTLExtra = 24 * time.Hour
			cfg.Retry.DeadDeadline = min(cfg.Retry.DeadDeadline, 8*time.Hour)
		}
	})
}

// wide returns the wide run of a seed.
func wide(t testing.TB, seed uint64, change ...func(*Options)) *World {
	t.Helper()
	return widthOf(seed).world(t, seed, change...)
}

func (b *breadth) world(t testing.TB, seed uint64, change ...func(*Options)) *World {
	t.Helper()
	d, cfg := b.d, b.settings(t, seed)
	o := Options{Config: cfg, Seed: seed, Faults: Swarm, Upstream: write(seed, sourcesOf(t, cfg), b.shape)}
	sometime := func() time.Duration { return d.upTo(o.Upstream.Calm) }
	operator := func(*World) {}
	if d.chance(0.12) {
		at := sometime()
		loss := Disaster{Loss: Loss(1 + d.IntN(int(QueuesPurged))), Backup: d.upTo(at), At: at, Live: d.chance(0.3)}
		operator = func(w *World) { w.await(&loss) }
	} else if d.chance(0.1) {
		at := sometime()
		absurd := Absurd{At: at, Looks: at + sometime()}
		b.absurd = true
		operator = func(w *World) { w.plague(absurd) }
	}
	w := begin(t, o, change...)
	operator(w)
	r := &w.rates
	for _, rate := range []*float64{&r.ClockStep, &r.Older, &r.Newer, &r.ManifestGone} {
		if d.chance(0.15) {
			*rate = d.logUniform(0.003, 0.3)
		}
	}
	if d.chance(0.1) {
		r.WrongClock = 0.05
	}
	if b.days {
		r.IOFailAfter = max(r.IOFailAfter, 0.2) // little happens in these runs that can go wrong
	}
	w.drawn = *r
	if d.chance(0.1) {
		from := sometime()
		of := oneOf(d, w.pipes...)
		w.outages = append(w.outages, outage{service: fault.Search, from: from, to: from + sometime(), of: of})
	}
	if d.chance(0.15) {
		from := sometime()
		w.outages = append(w.outages, outage{service: fault.Table, from: from, to: from + d.upTo(3*time.Minute)})
	}
	if d.chance(0.1) {
		at := sometime()
		w.after(at, w.upgrade)
		// Messages that wait for the rows must not expire in the meantime, because no build can
		// restore them.
		w.after(at+cfg.Queues.DeadLetterRetention/4, w.downgrade)
		w.after(o.Upstream.Calm, w.downgrade)
	}
	if d.chance(0.15) {
		for range 1 + d.IntN(3) {
			w.after(sometime(), func() { w.redriveByQueue(oneOf(w.dice, w.pipes...)) })
		}
	}
	return w
}

// upgrade lets a newer build write some of the existing rows. The newer build is rolled back later,
// at the latest when the injected failures end.
func (w *World) upgrade() {
	for _, doc := range w.oracle.sorted() {
		if row := w.table.row(doc); row.Exists() && w.dice.chance(0.5) {
			w.setSchema(doc, shard.SchemaVersion+1)
			w.coverage[point{aFailure, "row of a newer build", ""}]++
		}
	}
}

// downgrade makes the rows of the newer build readable again.
func (w *World) downgrade() {
	for _, doc := range w.oracle.sorted() {
		if w.table.row(doc).Foreign() {
			w.setSchema(doc, shard.SchemaVersion)
		}
	}
}

func (w *World) setSchema(doc shard.DocID, to int64) {
	w.trace.mark(fmt.Sprintf("schema %d of %s", to, doc), "", 0)
	_, _ = w.table.rows.Write(background, shard.Write{Doc: doc, Update: []shard.Action{ // never refused
		{Verb: shard.Set, Attr: shard.AttrSchema, Val: shard.Value{Num: to}},
	}})
}

// redriveByQueue is SQS's own redrive of a dead-letter queue, StartMessageMoveTask. Visible
// messages become new messages of an ingest queue, without a decision by lull.
func (w *World) redriveByQueue(p *pipe) {
	q := p.dead
	for range q.Counts().Visible {
		m := q.Front(w.now)
		if m == nil {
			return
		}
		w.coverage[point{aFailure, "dead letter moved by SQS's own redrive", ""}]++
		q.Take(w.now, m)
		to := p.live
		if m.MovedFrom == p.bulk.Name {
			to = p.bulk
		}
		msg, err := to.New(w.now, &queue.Outgoing{Body: m.Body, Attributes: m.Attributes})
		if err != nil {
			w.oracle.violate("a dead letter can be moved", err.Error())
			return
		}
		to.enter(msg, 0)
		w.oracle.redriving = true
		q.Queue.Delete(m)
		w.oracle.redriving = false
	}
}

func TestEveryPromiseHoldsInWideWorlds(t *testing.T) {
	t.Parallel()
	hold(t, 2000, Wide, func(seed uint64) *World { return wide(t, seed) })
}

// TestEventsThatLiveElsewhereAreSkippedAndNotLost: one topic may send every event to the queues of
// several sinks. Each sink skips events of other sinks, and no event is lost. A message with events
// of two sinks goes to both.
func TestEventsThatLiveElsewhereAreSkippedAndNotLost(t *testing.T) {
	t.Parallel()
	both := 0
	for seed := uint64(1); seed <= seeds(2000) && !t.Failed(); seed++ {
		if !widthOf(seed).second {
			continue
		}
		w := wide(t, seed, func(o *Options) { o.Config.Queues.Elsewhere = config.ElsewhereSkip })
		arrivals := len(w.options.Upstream.Arrivals)
		r := w.Run()
		report(t, r, Wide)
		both += r.Counts.Messages - arrivals
	}
	if both <= 0 {
		t.Errorf("%d messages more than were sent: none had events of both sinks", both)
	}
}

// TestNoUpstreamIsLaterThanTheSettingsAllow: a row lives as long as an older version of its
// document may arrive. The row's lifetime includes lifecycle.producerLateness. If an upstream sent
// a version later than that, its run would prove nothing.
func TestNoUpstreamIsLaterThanTheSettingsAllow(t *testing.T) {
	t.Parallel()
	events := 0
	for seed := uint64(1); seed <= 3000; seed++ {
		b := widthOf(seed)
		if !b.days {
			continue
		}
		cfg := b.settings(t, seed)
		sources := sourcesOf(t, cfg)
		newest := map[shard.DocID]shard.OrderKey{}
		since := map[shard.DocID]time.Duration{} // when the newest version was first sent
		for _, a := range write(seed, sources, b.shape).Arrivals {
			for _, r := range sources.Decode(queue.Message{Body: a.Message.Body, Sent: epoch}) {
				if r.Invalid != nil || r.Skip != "" {
					continue
				}
				events++
				doc, key := r.Event.Doc, r.Event.Key
				if key > newest[doc] {
					newest[doc], since[doc] = key, a.At
				} else if late := a.At - since[doc]; key < newest[doc] && late > cfg.Lifecycle.ProducerLateness {
					t.Errorf("seed %d: version %s of %s is sent %s after a newer one", seed, key, doc, late)
				}
			}
		}
	}
	if events < 1000 {
		t.Errorf("%d events in all worlds of days", events)
	}
}
