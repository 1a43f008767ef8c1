// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/pipeline/objects"
	"github.com/lullhq/lull/internal/pipeline/redrive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

// kit has the parts from which a test builds one service.
type kit struct {
	*testing.T
	rig      *usecasetest.Rig
	sink     *memorysink.Sink
	flights  *memory.Flights
	schedule *memory.Schedule
}

func newKit(t *testing.T) *kit {
	t.Helper()
	return &kit{
		t, usecasetest.Open(t, nil), memorysink.New(clock.System{}, memorysink.Settings{Versions: true}),
		memory.NewFlights(clock.System{}), memory.NewSchedule(),
	}
}

func (k *kit) layout() layout   { return layout{&k.rig.Config} }
func (k *kit) records() records { return records{k.rig.Shards, clock.System{}} }

func (k *kit) name() string {
	lay := k.layout()
	return lay.sinks()[0]
}

func (k *kit) engines() engines {
	return engines{
		layout: k.layout(), records: k.records(), Scanner: k.rig.Shards, Journal: &k.rig.Notes,
		Readers: map[string]sink.Reader{k.name(): k.sink}, Sinks: map[string]sink.Sink{k.name(): k.sink},
	}
}

func (k *kit) parked() parked {
	return parked{k.layout(), &redrive.Service{
		Shards: k.rig.Shards, Letters: k.rig.Letters, Flights: k.flights, Schedule: k.schedule, Config: &k.rig.Config,
		Clock: clock.System{}, Journal: &k.rig.Notes,
	}}
}

// commit commits a version of the document a, and writes it to the sink.
func (k *kit) commit() {
	k.Helper()
	e := k.rig.EventOf(usecasetest.Put("a", 1))
	k.rig.Admit(e)
	l := k.rig.Claim(e)
	k.sink.Write(k.Context(), []sink.Op{{
		Doc: e.Doc.Plain(), Kind: shard.Put, Fence: shard.Fence(l.At), Key: e.Key, Version: e.Version, At: time.Now(),
		Document: []byte(`{"title":"vienna"}`),
	}})
	k.rig.Commit(l, shard.Put)
}

// hold admits a version of the document a, and puts its message into the flight f.
func (k *kit) hold() {
	k.Helper()
	body := usecasetest.Put("a", 2)
	e := k.rig.EventOf(body)
	now := usecasetest.Now()
	k.rig.Write(shard.Admit(shard.Admission{Doc: e.Doc, Key: e.Key, Class: e.Class, Flight: "f", Now: now}))
	usecasetest.OK(k, k.flights.Put(k.Context(), &flight.Manifest{
		Schema: flight.SchemaVersion, Flight: "f", Sink: k.name(), Lane: flight.Live, Received: time.Now(),
		Records: []flight.Record{{
			Message: queue.Message{ID: "m", Receipt: "r", Body: body, Sent: time.Now(), ReceiveCount: 1},
			Events:  []flight.Entry{{Doc: e.Doc, Key: e.Key, Class: e.Class, Op: e.Op, Due: now, Admitted: now}},
		}},
	}))
}

// die parks a dead letter of the document a.
func (k *kit) die() {
	k.Helper()
	body := usecasetest.Put("a", 3)
	e := k.rig.EventOf(body)
	l := deadletter.New(queue.Message{ID: "m3", Body: body, Sent: time.Now()}, deadletter.RejectedBySink, "mapping",
		e.Doc, e.Key, 0, time.Now())
	l.Sink = k.name()
	usecasetest.Must(k.rig.Letters.Park(k.Context(), l))(k)
}

// started is a launcher that accepts every execution.
type started struct{}

func (started) Start(context.Context, flight.State) error { return nil }

// A service needs only the parts in its type: each test builds one service, and nothing else.
func TestEachServiceWorksWithItsPartsAlone(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]func(k *kit) (got string, err error){
		"publisher: 1 search": func(k *kit) (string, error) {
			var to string
			s := sender{Publisher: func(_ context.Context, sink string, _ flight.Lane, _ queue.Outgoing) error {
				to = sink
				return nil
			}}
			done, err := (&publisher{k.layout(), s, k.rig.Sources, clock.System{}}).Publish(k.Context(),
				Publication{Messages: []queue.Outgoing{{Body: usecasetest.Put("a", 1)}}})
			return fmt.Sprint(done.Events, " ", to), err
		},
		"composer: content#c 3": func(k *kit) (string, error) {
			s := &composer{k.layout(), k.rig.Sources, clock.System{}}
			m, err := s.Compose(k.Context(), Composition{ID: "c", N: 3})
			return fmt.Sprint(m.Key, " ", m.Version), err
		},
		"documents: 1 true": func(k *kit) (string, error) {
			k.commit()
			s := documents{k.engines()}
			d, err := s.Get(k.Context(), "content#a")
			found, searched := s.Search(k.Context(), Search{Text: "vienna"})
			return fmt.Sprint(d.Version, " ", len(found.Hits) == 1), errors.Join(err, searched)
		},
		"unwritten: held 2": func(k *kit) (string, error) {
			k.hold()
			u, err := (&unwritten{k.records(), manifests{k.flights}, k.parked(), k.rig.Sources}).Unwritten(k.Context(),
				"content#a")
			return u.From + " " + u.Version, err
		},
		"catalog: content#a waiting f": func(k *kit) (string, error) {
			k.hold()
			p, err := (&catalog{
				layout: k.layout(), records: k.records(), manifests: manifests{k.flights}, plans: plans{k.schedule},
				parked: k.parked(), Dead: k.rig.Letters,
			}).Documents(k.Context(), DocumentFilter{})
			d := p.Documents[0]
			return fmt.Sprint(d.Key, " ", d.State, " ", d.Flight), err
		},
		"groups: [content#a]": func(k *kit) (string, error) {
			k.hold()
			k.rig.Change("content#a", func(r *shard.Row) { r.Group = "tenant" })
			s := &groups{k.rig.Letters, k.schedule, k.rig.Shards, nil}
			p, err := s.InGroup(k.Context(), GroupQuery{Group: "tenant"})
			return fmt.Sprint(p.Keys), err
		},
		"explainer: fresh": func(k *kit) (string, error) {
			k.commit()
			x, err := (&explainer{
				engines: k.engines(), manifests: manifests{k.flights}, plans: plans{k.schedule}, parked: k.parked(),
			}).Explain(k.Context(), "content#a")
			return string(x.State), err
		},
		"reporter: 1 1": func(k *kit) (string, error) {
			k.hold()
			k.die()
			s, err := (&reporter{
				layout: k.layout(), records: k.records(), manifests: manifests{k.flights}, plans: plans{k.schedule},
				underway: underway{k.layout(), k.records()}, Dead: k.rig.Letters,
				Counts: func(context.Context) ([]QueueStatus, error) { return nil, nil },
			}).Status(k.Context())
			return fmt.Sprint(s.Letters, " ", s.Flights), err
		},
		"origins: cms.example is away": func(k *kit) (string, error) {
			k.rig.Config.Sources["native"] = config.Source{Fetch: &source.Fetch{URL: "https://cms.example/{id}"}}
			away := func(context.Context, source.Fetch) error { return errors.New("is away") }
			all, err := (&origins{k.layout(), away, 0}).Origins(k.Context())
			return all[0].Host + " " + all[0].Problem, err
		},
		"dead letters: 1 dropped": func(k *kit) (string, error) {
			k.die()
			s := &letters{k.parked(), k.rig.Sources}
			all, err := s.Letters(k.Context(), LetterFilter{})
			done, dropped := s.Drop(k.Context(), LetterOrder{All: true, By: "ann"})
			return fmt.Sprint(len(all), " ", done.Lines[0].Outcome), errors.Join(err, dropped)
		},
		"canceller: cancelled 2": func(k *kit) (string, error) {
			k.hold()
			l, err := (&canceller{k.layout(), k.parked(), plans{k.schedule}}).Cancel(k.Context(),
				Cancellation{Key: "content#a", By: "ann"})
			return fmt.Sprint(l.Reason, " ", l.Version), err
		},
		"resetter: 1 true": func(k *kit) (string, error) {
			k.commit()
			r, err := (&resetter{k.layout(), k.records(), &k.rig.Notes}).Reset(k.Context(),
				ResetOrder{Key: "content#a", To: "0", By: "ann"})
			return fmt.Sprint(r.Version, " ", k.rig.Row("content#a").Committed.IsFloor()), err
		},
		"pauser: true": func(k *kit) (string, error) {
			s := &pauser{k.layout(), k.records(), &k.rig.Notes}
			_, err := s.Pause(k.Context(), PauseOrder{All: true, By: "ann"})
			return fmt.Sprint(k.rig.Row(shard.HealthRow(k.name())).PausedAt != 0), err
		},
		"object reads: ann": func(k *kit) (string, error) {
			k.rig.Change(shard.ObjectRow(k.name(), "b", "k"), func(r *shard.Row) {
				r.Cursor = objects.Progress{Schema: objects.Schema, Version: "1"}.String()
			})
			r, err := (&objectReads{k.layout(), k.records(), &k.rig.Notes}).Object(k.Context(),
				ObjectOrder{Object: "s3://b/k", Abort: true, By: "ann"})
			return r.Sinks[0].Aborted, err
		},
		"rescuer: true": func(k *kit) (string, error) {
			k.hold()
			r, err := (&rescuer{
				layout: k.layout(), Shards: k.rig.Shards, Flights: k.flights, Dead: k.rig.Letters, Schedule: k.schedule,
				Launcher: func(string) flight.Launcher { return started{} }, Clock: clock.System{},
				Queues: func(string, flight.Lane) queue.Queue { return nil }, Journal: &k.rig.Notes,
			}).Rescue(k.Context(), "f")
			return fmt.Sprint(r.ID != "" && r.ID != "f"), err
		},
		"comparer: 1": func(k *kit) (string, error) {
			k.commit()
			p, err := (&comparer{k.engines(), k.rig.Sources, nil}).Reconcile(k.Context(),
				ReconcileOrder{Collection: "content", By: "ann", DryRun: true})
			return fmt.Sprint(p.Documents), err
		},
		"remover: changed": func(k *kit) (string, error) {
			k.commit()
			r, err := (&remover{k.engines()}).Remove(k.Context(), RemoveOrder{
				Collection: "content", Run: "01ARZ3NDEKTSV4RRFFQ69G5FAV", By: "ann", DryRun: true,
				Documents: []ReconcileCopy{{Key: "content#a", OrderKey: "another"}},
			})
			return r.Documents[0].Outcome, err
		},
		"rebuilder: nothing to resume": func(k *kit) (string, error) {
			s := &rebuilder{engines: k.engines(), running: underway{k.layout(), k.records()}}
			_, err := s.Rebuild(k.Context(), RebuildOrder{Action: "resume", By: "ann"})
			if errors.Is(err, ErrNotFound) {
				return "nothing to resume", nil
			}
			return "", err
		},
		"replayer: 0": func(k *kit) (string, error) {
			at := time.Now()
			o := ReplayOrder{
				ArchiveRange: ArchiveRange{at.Add(-time.Hour), at}, Run: "01ARZ3NDEKTSV4RRFFQ69G5FAV", By: "ann",
			}
			size, err := (&replayer{
				layout: k.layout(), Archive: memory.NewArchive(clock.System{}, time.Hour),
			}).Archived(k.Context(), o)
			return fmt.Sprint(size.Messages), err
		},
		"backfiller: true": func(k *kit) (string, error) {
			_, err := (&backfiller{k.engines()}).Backfill(k.Context(),
				BackfillOrder{Collection: "content", Sink: k.name(), By: "ann"})
			return fmt.Sprint(errors.Is(err, ErrInput)), nil
		},
		"ledger: 1 running": func(k *kit) (string, error) {
			s := &ledger{k.records()}
			_, err := s.TakeJob(k.Context(), job.Claim{ID: "drop", Verb: "drop", By: "ann", First: []byte("{}")})
			all, listed := s.Jobs(k.Context())
			return fmt.Sprint(len(all), " ", all[0].Phase), errors.Join(err, listed)
		},
		"forgetter: 1 flights": func(k *kit) (string, error) {
			k.commit()
			step, err := (&forgetter{
				engines: k.engines(), manifests: manifests{k.flights}, Dead: k.rig.Letters, Schedule: k.schedule,
				Sources: k.rig.Sources,
			}).Forget(k.Context(), ForgetOrder{Key: "content#a", By: "ann", DryRun: true})
			return fmt.Sprint(step.Counts[placeTombstone+foundIn], " ", step.Next.Place), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, want, _ := strings.Cut(name, ": ")
			if got, err := try(newKit(t)); err != nil || got != want {
				t.Errorf("got %s, error %v, want %s", got, err, want)
			}
		})
	}
}
