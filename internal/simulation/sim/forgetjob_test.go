// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
)

// archiveClient is the archive as an invocation of an operator sees it.
type archiveClient struct {
	*archived
	v *invocation
}

func (a archiveClient) do(ctx context.Context, call string, do func(ctx context.Context) error) error {
	return a.v.Do(ctx, fault.Op{Service: fault.Bucket, Call: call, Count: 1}, do)
}

func (a archiveClient) Get(ctx context.Context, n archive.Name) (object []byte, err error) {
	err = a.do(ctx, "GetArchive", func(ctx context.Context) (err error) {
		object, err = a.archived.Get(ctx, n)
		return err
	})
	return object, err
}

func (a archiveClient) List(ctx context.Context, after, to archive.Name, limit int) (list []archive.Object, more bool,
	err error,
) {
	err = a.do(ctx, "ListArchive", func(ctx context.Context) (err error) {
		list, more, err = a.archived.List(ctx, after, to, limit)
		return err
	})
	return list, more, err
}

func (a archiveClient) Remove(ctx context.Context, n archive.Name) error {
	return a.do(ctx, "RemoveArchive", func(ctx context.Context) error { return a.archived.Remove(ctx, n) })
}

func (a archiveClient) Rewrite(ctx context.Context, n archive.Name, object []byte) error {
	return a.do(ctx, "RewriteArchive", func(ctx context.Context) error { return a.archived.Rewrite(ctx, n, object) })
}

func (a jobAPI) Forget(ctx context.Context, o operate.ForgetOrder) (step operate.ForgetStep, err error) {
	o.Limit = a.j.limit
	hooked(a.j.edits.forget, &o)
	err = a.call(ctx, func(ctx context.Context, op *operate.Operator) (err error) {
		op.Dead = droppingStore{Store: op.Dead, j: a.j}
		step, err = op.API().Forget(ctx, o)
		return err
	})
	if a.j.edits.forgot != nil {
		a.j.edits.forgot(o, &step)
	}
	return step, err
}

// forgottenContent is content of the document that is forgotten, and of nothing else.
const forgottenContent = "5ecret-content-of-the-forgotten"

// copies returns the places that have a copy of the document. If a place may get another copy
// later, the name of the place includes the time or the id of the copy.
func (w *World) copies() map[string]bool {
	all := map[string]bool{}
	has := func(place, text string) {
		if usecasetest.Contains([]byte(text), forgottenContent) {
			all[place] = true
		}
	}
	doc := shard.DocID(w.cfg.DefaultCollection + "#" + forgottenID)
	for _, row := range w.cfg.RowsOf(doc) {
		if w.oracle.ledger(row).inSinkOp == shard.Put {
			all["the sink of "+string(row)] = true
		}
		if r := w.table.row(row); !r.Committed.IsFinal() {
			all["no tombstone in "+string(row)] = true
		}
	}
	for _, f := range w.letters.facts() {
		l, _, _ := w.letters.Get(background, f.ID)
		has(fmt.Sprint("dead letter ", f.ID, f.Died), l.Body)
	}
	items, _, _ := w.schedule.List(background, "", "", math.MaxInt32)
	for _, it := range items {
		it, _, _ = w.schedule.Get(background, it.ID)
		has(fmt.Sprint("scheduled event ", it.ID, it.MessageID, it.FirstSent), it.Body)
	}
	list, _, _ := w.flights.List(background, "", math.MaxInt32)
	for _, f := range list {
		m, err := w.flights.Flights.Get(background, f.ID)
		if err != nil {
			m = new(flight.Manifest)
		}
		for _, r := range m.Records {
			has("flight "+string(f.ID), r.Message.Body)
		}
	}
	objects, _, _ := w.archive.List(background, "", "~", math.MaxInt32)
	for _, o := range objects {
		_, msgs, _ := archive.Read(background, w.archive, o.Name)
		for _, m := range msgs {
			has("object "+string(o.Name), m.Body)
		}
	}
	return all
}

// paged lists the places that a job reads page by page. removing lists the places from which a job
// removes something page by page.
var (
	paged    = []string{"flights", "scheduled events", "dead letters", "archive"}
	removing = []string{"messages of other scheduled events", "scheduled events", "dead letters", "archive"}
)

// listing records what the cursors of jobs named to be removed.
type listing struct {
	counts map[string]int // by job, number of steps, and place
	named  map[string]bool
}

func (l listing) key(s job.State, steps int, place string) string {
	return fmt.Sprint(s.Begun, steps, place)
}

// see counts along the steps. A save that arrives late may move the job back: then its next steps
// are others.
func (l listing) see(s Step) {
	var now job.State
	var at operate.ForgetCursor
	if s.What != Wrote || s.Write.Doc != shard.RunRow("job-forget") || json.Unmarshal([]byte(s.New.Cursor), &now) != nil ||
		json.Unmarshal(now.At, &at) != nil {
		return
	}
	for _, place := range removing {
		l.counts[l.key(now, now.Steps, place)] = l.counts[l.key(now, now.Steps-1, place)]
	}
	for _, t := range at.At.Remove {
		place := at.At.Place
		if t.Shared {
			place = removing[0]
		}
		l.named[t.ID] = true
		l.counts[l.key(now, now.Steps, place)] += t.N
	}
}

// forgotten is the world of a seed with a document that a job forgets, again and again. Its events
// come alone and in messages of other documents, some for later, and some are invalid.
func forgotten(t testing.TB, seed uint64, edits jobEdits) (*World, *Jobbing) {
	t.Helper()
	j := jobbed(seed, "forget", edits)
	j.known = nil // the cursor has more than the steps say
	listed := listing{map[string]int{}, map[string]bool{}}
	cfg := settings(t, seed%2 == 0, func(cfg *config.Config) {
		vary(seed, cfg)
		if seed%3 == 0 {
			fanOut(cfg)
		}
		cfg.TableOutage = config.TableOutageClosed
		cfg.Archive.Keep = 14 * 24 * time.Hour
	})
	w := begin(t, Options{
		Config: cfg, Seed: seed, Faults: Swarm, Upstream: Write(seed, sourcesOf(t, cfg)), Watch: func(s Step) {
			listed.see(s)
			j.see(s)
		},
	})
	at := j.dice.upTo(w.options.Upstream.Calm)
	w.versions(at, func(v int) string {
		event := func(id, title, more string) string {
			return fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":%q}%s}`, id, v, title, more)
		}
		later := ""
		if j.dice.chance(0.2) {
			later = fmt.Sprintf(`,"notbefore":%q`, epoch.Add(w.now+15*time.Minute+j.dice.upTo(30*time.Minute)).Format(
				time.RFC3339))
		}
		bodies := []string{event(forgottenID, forgottenContent, later)}
		if j.dice.chance(0.5) {
			bodies = append(bodies, event("beside", "harmless", later))
		}
		if j.dice.chance(0.3) { // a dead letter of no document
			bodies = append(bodies, `{"type":"doc.changed","subject":"junk"}`)
		}
		return envelope(bodies)
	})
	j.dropped = map[string]bool{}
	before := map[string]bool{}
	j.begun = func(job.State) { before = w.copies() }
	j.whole = func(s job.State, fail func(string)) {
		for _, place := range removing {
			if got, want := s.Counts[place+" removed"], listed.counts[listed.key(s, s.Steps-1, place)]; got != want {
				fail(fmt.Sprintf("a forget counts each thing once: %d %s, it listed %d", got, place, want))
			}
		}
		for id := range j.dropped {
			if !listed.named[id] {
				fail("a forget removes only what its cursor names: " + id)
			}
		}
		if remain(s) > 0 || unknown(s) {
			return
		}
		now := w.copies()
		for place := range before {
			if now[place] {
				fail("where nothing remains of a forgotten document, no copy is left: " + place)
			}
		}
	}
	f := operate.Forgetting{Key: shard.DocID(w.cfg.DefaultCollection + "#" + forgottenID), By: "the simulator"}
	j.run = func(ctx context.Context, r job.Runner, api operate.API) error {
		f.Clock, f.Patience = r.Clock, oneOf(j.dice, 0, time.Minute)
		_, err := job.Run(ctx, r, f.Job(api), func(operate.ForgetNote) {})
		return err
	}
	j.over = func(s job.State) bool {
		j.tries = 0
		for _, row := range w.cfg.RowsOf(f.Key) { // a tombstone that has begun keeps other versions waiting
			if w.table.row(row).Flight == "operator" {
				j.due = 0
				return false
			}
		}
		j.due = max(j.due, w.oracle.lastDue+20*time.Minute, w.options.Upstream.Calm+5*time.Minute)
		switch {
		case !w.calm || w.now < j.due:
			return false
		case remain(s) > 0:
			j.obey(s)
			j.due = w.now + 5*time.Minute
			return false
		}
		left := w.copies()
		if len(left) > 0 && s.Begun.Before(epoch.Add(w.oracle.lastDue+20*time.Minute)) {
			return false // what was in a queue has come since
		}
		for place := range left {
			w.oracle.always("where nothing remains of a forgotten document, no copy is left", place)
		}
		return true
	}
	j.begin(w, at)
	return w, j
}

// remain is how many things of the document a job left.
func remain(s job.State) (n int) {
	for name, of := range s.Counts {
		switch {
		case strings.HasSuffix(name, " found"):
			n += of
		case strings.HasSuffix(name, " removed"):
			n -= of
		}
	}
	return n
}

func unknown(s job.State) bool {
	var at operate.ForgetCursor
	return json.Unmarshal(s.At, &at) != nil || at.Unknown
}

// obey does what the lines of a job say: it drops the dead letters. A scheduled event goes at its
// time.
func (j *Jobbing) obey(s job.State) {
	for _, text := range s.Lines {
		var l operate.ForgetNote
		_ = json.Unmarshal(text, &l)
		if l.Place != "messages of other dead letters" {
			continue
		}
		if e := j.w.oracle.events[l.ID]; e != nil {
			e.dropping = true
		}
		_ = j.w.letters.Drop(background, l.ID)
	}
}

// Programs are killed and stopped, and two run at a time. If the job says that nothing remains, no
// copy is left of those that existed when the job began. Every promise holds.
func TestADocumentIsForgottenByAJobWhateverFails(t *testing.T) {
	t.Parallel()
	var last *Jobbing
	sum, counts := &Jobbing{}, map[string]int{}
	for range runs(t, 300, Swarm, func(seed uint64) (w *World) {
		w, last = forgotten(t, seed, jobEdits{})
		return w
	}) {
		sum.add(last)
		for name, n := range last.state().Counts {
			counts[name] += n
		}
	}
	sum.report(t)
	t.Log(counts)
}

// Each mutant leaves out something that a change of the job might also leave out.
func TestEveryMutantOfAForgetIsNoticed(t *testing.T) {
	t.Parallel()
	if testing.Short() || raceEnabled {
		t.Skip("hundreds of worlds")
	}
	uncounted := func(names ...string) jobEdits {
		return jobEdits{forgot: func(_ operate.ForgetOrder, s *operate.ForgetStep) {
			maps.DeleteFunc(s.Counts, func(name string, _ int) bool { return slices.Contains(names, name) })
		}}
	}
	for name, edits := range map[string]jobEdits{
		"it writes no tombstone": {forget: func(o *operate.ForgetOrder) {
			if o.At.Place == "tombstone" {
				o.At.Place, o.At.Sink = paged[0], ""
			}
		}},
		"it does not wait for a tombstone": {forgot: func(o operate.ForgetOrder, s *operate.ForgetStep) {
			if o.At.Place == "tombstone" && s.Counts["waiting"] > 0 {
				s.Counts, s.Next.Moving = nil, nil
			}
		}},
		"it does not wait for a flight":   uncounted("flights found", "waiting"),
		"dead letters of others may stay": uncounted("messages of other dead letters found"),
		"it reads the first page only": {forgot: func(o operate.ForgetOrder, s *operate.ForgetStep) {
			at := slices.Index(paged, o.At.Place)
			switch {
			case at < 0 || s.Next == nil || s.Next.Page == "" || len(s.Next.Remove) > 0:
			case at+1 == len(paged):
				s.Next = nil
			default:
				s.Next.Place, s.Next.Page = paged[at+1], ""
			}
		}},
		"it counts what it does not remove": {forget: func(o *operate.ForgetOrder) {
			o.At.Remove = slices.Clone(o.At.Remove)
			for i := range o.At.Remove {
				if o.At.Place == "scheduled events" {
					o.At.Remove[i].ID = "another"
				}
			}
		}},
		"it counts what it finds, and again what it removes": {forgot: func(_ operate.ForgetOrder, s *operate.ForgetStep) {
			if s.Next != nil && len(s.Next.Remove) > 0 {
				s.Counts[s.Next.Place+" found"]++
				s.Counts[s.Next.Place+" removed"]++
			}
		}},
		"it takes the lease that somebody has": {operate: func(o *operate.Operator) {
			o.Shards = editedStore{o.Shards, claims, func(w *shard.Write) { w.Cond = w.Cond[:3] }}
		}},
		"it does not commit": {operate: func(o *operate.Operator) { o.Shards = ignoring{o.Shards, commits} }},
		"SAVE RUN does not ask for the owner": editingRuns(shard.SAVERUN, func(w *shard.Write) {
			without(w, shard.AttrOwner)
		}),
		"START RUN does not ask when the last lease began": editingRuns(shard.STARTRUN, func(w *shard.Write) {
			without(w, shard.AttrRanAt)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := caught(t, 300, func(seed uint64) *World {
				w, _ := forgotten(t, seed, edits)
				return w
			})
			t.Log(r.Violations[0].Rule)
		})
	}
}
