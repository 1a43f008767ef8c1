// SPDX-License-Identifier: Apache-2.0

package receive

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
)

// stand is what a test of a stage needs: an invocation, and stores in memory.
type stand struct {
	*usecasetest.Rig
	in         *invocation
	table      rows.Table
	live, dead *memory.Queue
	flights    *memory.Flights
}

// alone runs the story of one stage in a synctest bubble.
func alone(t *testing.T, story func(s *stand)) {
	t.Helper()
	usecasetest.Story(t, func(t *testing.T) {
		rig, clk := usecasetest.Open(t, nil), clock.System{}
		story(&stand{
			Rig: rig, in: &invocation{time.Now(), clk, &rig.Config, "search", flight.Live, &rig.Notes, nil},
			table: rows.Table{Store: rig.Shards, Clock: clk}, flights: memory.NewFlights(clk),
			live: rig.Queue("live", 90*24*time.Hour), dead: rig.Queue("dead", 90*24*time.Hour),
		})
	})
}

// received makes a message that is received for the first time.
func received(id string) queue.Message {
	return queue.Message{ID: id, Receipt: "receipt " + id, Body: "{}", Sent: time.Now(), ReceiveCount: 1}
}

// hidden sends a message and receives it, so that its receipt handle is valid.
func (s *stand) hidden(count int) message {
	s.Helper()
	s.live.Send(s.Context(), []queue.Outgoing{{Body: "{}"}})
	got := usecasetest.Must(s.live.Receive(s.Context(), 1, 0))(s)
	if len(got) != 1 {
		s.Fatalf("received %v, want one message", got)
	}
	got[0].ReceiveCount = count
	return message{Message: got[0], events: 1, open: 1}
}

// invisible checks, to the second, how long the live queue hides its only message.
func (s *stand) invisible(want time.Duration) {
	s.Helper()
	time.Sleep(want - time.Second)
	if n := s.live.Counts().Visible; n != 0 {
		s.Errorf("the message is visible before %s", want)
	}
	time.Sleep(2 * time.Second)
	if n := s.live.Counts().Visible; n != 1 {
		s.Errorf("the message is not visible after %s", want)
	}
}

// version makes an event of a message.
func (s *stand) version(m *message, id string, version int) pending {
	s.Helper()
	return pending{Event: s.EventOf(usecasetest.Put(id, version)), msg: m}
}

// noID is the newID of stages that must not start a flight.
func (s *stand) noID(time.Time) flight.ID {
	s.Error("the stage asked for the id of a flight")
	return ""
}

func flightOne(time.Time) flight.ID { return "flight-1" }

func TestBelieveRemovesWhatAnotherSenderClaims(t *testing.T) {
	alone(t, func(s *stand) {
		m := received("a")
		m.Sender, m.Attributes = "AROAOTHER:x", map[string]queue.Attribute{queue.AttrLine: queue.Text("1")}
		given := []queue.Message{m, received("b")}
		got := believe(s.in, queue.Senders{"AROARECEIVE"}, given)
		if len(got[0].Attributes) != 0 || len(given[0].Attributes) != 1 {
			s.Errorf("believed %v of %v, want a copy without the attribute", got[0].Attributes, given[0].Attributes)
		}
		s.Noted(journal.Untrusted, 1)
	})
}

func TestClockOffComparesWithTheMessages(t *testing.T) {
	for name, c := range map[string]struct {
		sent time.Duration
		off  bool
	}{"now": {0, false}, "an hour ago": {-time.Hour, false}, "in an hour": {time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(s *stand) {
				m := received("a")
				m.Sent = m.Sent.Add(c.sent)
				if got := clockOff(s.in, []queue.Message{m}); got != c.off {
					s.Errorf("off is %t, want %t", got, c.off)
				}
			})
		})
	}
}

func TestReadHealthOfASinkWithoutARow(t *testing.T) {
	alone(t, func(s *stand) {
		if health, readable := readHealth(s.Context(), s.in, s.Shards); !readable || health.OpenUntil != 0 {
			s.Errorf("health %+v, readable %t, want a healthy sink", health, readable)
		}
		ended, cancel := context.WithCancel(s.Context())
		cancel()
		if _, readable := readHealth(ended, s.in, s.Shards); readable {
			s.Error("the health is readable after a failed read")
		}
		s.Noted(journal.CallFailed, 1)
	})
}

func TestSendAwayKeepsOnlyWhatIsOverdue(t *testing.T) {
	alone(t, func(s *stand) {
		m, old := s.hidden(1), received("old")
		old.Sent = s.in.start.Add(-s.in.config.Retry.DeadDeadline - time.Second)
		health := shard.Row{OpenUntil: usecasetest.Now().Add(time.Minute), Level: 7}
		given := []queue.Message{m.Message, old}
		present, absent := sendAway(s.Context(), hider{s.in, s.live}, health, given)
		if len(present) != 1 || present[0].ID != "old" || len(absent) != 1 || absent[0].ID != m.ID {
			s.Errorf("present %v, absent %v, want only the overdue message present", present, absent)
		}
		s.invisible(time.Until(s.Notes.Of(journal.Away)[0].Until))
		present, absent = sendAway(s.Context(), hider{s.in, s.live}, shard.Row{}, given)
		if len(present) != 2 || len(absent) != 0 {
			s.Errorf("present %v, absent %v, want all present for a healthy sink", present, absent)
		}
	})
}

func TestUnwrapOpensDeadLetters(t *testing.T) {
	alone(t, func(s *stand) {
		inner := received("inner")
		l := deadletter.Of(inner).New(deadletter.Contract, "why", "", "", 0, s.in.start)
		out := usecasetest.Must(l.Message())(s)
		letter := received("letter")
		letter.Body, letter.Attributes = out.Body, out.Attributes
		got := unwrap(nil, []queue.Message{received("plain"), letter})
		if got[0].Body != "{}" || got[0].letter != "" || got[0].full {
			s.Errorf("plain message %+v, want it unchanged", got[0])
		}
		if got[1].Body != inner.Body || got[1].ID != "letter" || got[1].full || got[1].newer {
			s.Errorf("dead letter %+v, want the body inside it", got[1])
		}
	})
}

// panicking panics on the body "panic" and decodes any other body.
type panicking struct{}

func (panicking) DecodeContext(_ context.Context, m queue.Message) []event.Result {
	if m.Body == "panic" {
		panic("decode")
	}
	return []event.Result{{Event: event.Event{Data: m.Body}}}
}

func TestDecodeKeepsAPanicToItsMessage(t *testing.T) {
	alone(t, func(s *stand) {
		bad, full := message{Message: received("bad")}, message{Message: received("full"), full: true}
		bad.Body = "panic"
		got := decode(s.Context(), s.in, panicking{}, []message{{Message: received("good")}, bad, full})
		if len(got[0]) != 1 || got[0][0].Invalid != nil || got[0][0].Event.Data != "" {
			s.Errorf("good: %+v, want its event without the body", got[0])
		}
		if len(got[1]) != 1 || got[1][0].Invalid == nil || !got[1][0].Invalid.Transient() {
			s.Errorf("bad: %+v, want a transient fault at the first receive", got[1])
		}
		if got[2] != nil {
			s.Errorf("full: %+v, want no result", got[2])
		}
	})
}

func TestSortEvents(t *testing.T) {
	alone(t, func(s *stand) {
		e := s.EventOf(usecasetest.Put("a", 1))
		soon, far, tooFar := e, e, e
		soon.NotBefore, far.NotBefore = s.in.start.Add(time.Second), s.in.start.Add(time.Hour)
		tooFar.NotBefore = s.in.start.Add(s.in.config.Lifecycle.RowRetention)
		batch := []message{
			{Message: received("all")}, {Message: received("full")}, {Message: received("new"), newer: true},
		}
		got := sortEvents(s.in, batch, [][]event.Result{{
			{Event: e},
			{Event: soon},
			{Event: far},
			{Event: tooFar},
			{Skip: "heartbeat"},
			{Object: &event.Object{}},
			{Invalid: &event.Invalid{Reason: deadletter.Contract}},
			{Invalid: &event.Invalid{Err: errors.New("later")}},
		}, nil, nil})
		n := []int{len(got.events), len(got.later), len(got.faults), len(got.objects)}
		if !slices.Equal(n, []int{2, 1, 2, 1}) {
			s.Errorf("%v events, later, faults and objects, want 2, 1, 2 and 1", n)
		}
		m := batch[0]
		if m.open != 7 || m.events != 8 || m.later != 1 || !m.failed || !batch[1].failed || !batch[2].failed {
			s.Errorf("messages %+v, want seven open events and every message failed", batch)
		}
		s.Noted(journal.Skipped, 1)
		s.Noted(journal.Schema, 1)
		s.Noted(journal.Failed, 3)
	})
}

func TestCollapseOrdersDocumentsByTurnsAndVersionsNewestFirst(t *testing.T) {
	alone(t, func(s *stand) {
		one, two := &message{Message: received("1")}, &message{Message: received("2")}
		events := []pending{
			s.version(one, "a", 1), s.version(one, "b", 1), s.version(two, "c", 1), s.version(two, "a", 2),
		}
		docs := collapse(s.in, events)
		var got []string
		for i, d := range docs {
			if got = append(got, string(d.id)); d.place != i {
				s.Errorf("document %s has place %d, want %d", d.id, d.place, i)
			}
		}
		if want := []string{"content#a", "content#c", "content#b"}; !slices.Equal(got, want) {
			s.Errorf("documents %v, want %v", got, want)
		}
		if a := docs[0].events; len(a) != 2 || a[0] != &events[3] || events[3].doc != docs[0] {
			s.Errorf("events of a: %+v, want version 2 first", a)
		}
	})
}

func TestAdmitPassesOverWhatTheRowDecided(t *testing.T) {
	alone(t, func(s *stand) {
		m := &message{Message: received("1")}
		events := []pending{s.version(m, "a", 1), s.version(m, "a", 2), s.version(m, "b", 1)}
		s.Change(usecasetest.Doc("a"), func(r *shard.Row) { r.VersionClass, r.Dead = shard.ClassInt, events[1].Key })
		docs := collapse(s.in, events)
		got := (&admitter{invocation: s.in, table: s.table, newID: flightOne}).admit(s.Context(), docs)
		if got.flight != "flight-1" || !got.at.Equal(time.Now()) || got.unreachable || got.readable {
			s.Errorf("admitted %+v, want no read and an answer", got)
		}
		for _, d := range docs {
			if d.asked.Version != "1" || !d.admitted || d.after.Pending != d.asked.Key {
				s.Errorf("document %s: ADMIT was tried for %+v, row %+v; want version 1 pending", d.id, d.asked, d.after)
			}
		}
		s.Noted(journal.RowRefused, 1)
		s.Noted(journal.Admitted, 2)
	})
}

func TestAdmitNoticesThatTheTableIsAway(t *testing.T) {
	alone(t, func(s *stand) {
		events := []pending{s.version(&message{Message: received("1")}, "a", 1)}
		docs := collapse(s.in, events)
		s.in.start = s.in.start.Add(-time.Hour) // the time for the table is over, but the caller still has time
		got := (&admitter{invocation: s.in, table: s.table, newID: flightOne}).admit(s.Context(), docs)
		if !got.unreachable || docs[0].err == nil || docs[0].asked != &events[0] {
			s.Errorf("admitted %+v, document %+v, want the table unreachable", got, docs[0])
		}
	})
}

func TestJudgeByTheRow(t *testing.T) {
	for name, c := range map[string]struct {
		row    func(d *document, k shard.OrderKey)
		step   journal.Step
		letter deadletter.Reason
		hold   bool
	}{
		"held":      {func(*document, shard.OrderKey) {}, "", "", true},
		"no answer": {func(d *document, _ shard.OrderKey) { d.err = errors.New("away") }, journal.Failed, "", false},
		"committed": {func(d *document, k shard.OrderKey) { d.after.Committed = k }, journal.Duplicate, "", false},
		"dead":      {func(d *document, k shard.OrderKey) { d.after.Dead = k }, journal.AlreadyDead, "", false},
		"another class": {func(d *document, _ shard.OrderKey) {
			d.after.Schema, d.after.VersionClass = shard.SchemaVersion, shard.ClassTime
		}, "", deadletter.ClassMismatch, false},
		"a newer schema": {func(d *document, _ shard.OrderKey) {
			d.after.Schema = shard.SchemaVersion + 1
		}, journal.Failed, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(s *stand) {
				m := &message{Message: received("1"), open: 1}
				events := []pending{s.version(m, "a", 1)}
				docs := collapse(s.in, events)
				docs[0].after.VersionClass = shard.ClassInt
				c.row(docs[0], events[0].Key)
				dead := judge{s.in, shard.Row{}}.judge(docs)
				if events[0].hold != c.hold || m.held != c.hold {
					s.Errorf("held %t, want %t", events[0].hold, c.hold)
				}
				if c.hold && events[0].due != shard.MicrosOf(m.Sent.Add(s.in.config.Debounce.Quiet)) {
					s.Errorf("the event is due at %s, want one quiet window after it was sent", events[0].due.Time())
				}
				if c.step != "" {
					s.Noted(c.step, 1)
				}
				if c.letter == "" && len(dead) != 0 || c.letter != "" && (len(dead) != 1 || dead[0].reason != c.letter) {
					s.Errorf("dead letters %+v, want %q", dead, c.letter)
				}
			})
		})
	}
}

func TestPackGivesEachVersionItsDeadLetter(t *testing.T) {
	alone(t, func(s *stand) {
		one, two := &message{Message: received("1")}, &message{Message: received("2")}
		var found faults
		for i := range maxAlike + 1 {
			p := s.version(one, "a", i)
			found.add(&p, deadletter.Contract, "many")
		}
		for i := range 2 {
			p := s.version(two, "b", i)
			found.add(&p, deadletter.Contract, "few")
		}
		letters := pack(nil, found)
		if len(letters) != 3 || len(letters[0].faults) != maxAlike+1 || letters[1].first().p.msg != two {
			s.Errorf("dead letters %+v, want one for the first message, and two for the second", letters)
		}
	})
}

func TestLettersAreSentOnceAndTheUrgentFirst(t *testing.T) {
	alone(t, func(s *stand) {
		held, other := &message{Message: received("1"), open: 2, held: true}, &message{Message: received("2"), open: 1}
		var found faults
		for _, m := range []*message{held, other} {
			p := s.version(m, m.ID, 1)
			p.doc = &document{id: p.Doc}
			found.add(&p, deadletter.TooOld, "late")
		}
		letters, send := pack(nil, found), letterSender{s.in, s.table, s.dead}
		send.urgent(s.Context(), letters)
		if held.open != 1 || other.open != 1 {
			s.Errorf("%d and %d events are open, want only the dead letters of the held message sent", held.open, other.open)
		}
		send.rest(s.Context(), letters)
		s.WantLetters(s.dead, 2)
		if held.open != 1 || other.open != 0 {
			s.Errorf("%d and %d events are open, want each dead letter sent once", held.open, other.open)
		}
		if r := s.Row(usecasetest.Doc("2")); r.Dead != found[1].p.Key {
			s.Errorf("row %+v, want the version marked dead", r)
		}
	})
}

func TestScheduleStoresACopyOrAnItem(t *testing.T) {
	alone(t, func(s *stand) {
		m, bad := &message{Message: received("1"), events: 2, open: 2}, &message{Message: received("2"), failed: true}
		near, far, failed := s.version(m, "a", 1), s.version(m, "b", 1), s.version(bad, "c", 1)
		near.NotBefore, far.NotBefore = s.in.start.Add(time.Minute), s.in.start.Add(time.Hour)
		stored := memory.NewSchedule()
		scheduler{s.in, s.live, stored}.store(s.Context(), []laterEvent{{p: near}, {p: far}, {p: failed}})
		if n := s.live.Counts().Delayed; n != 1 || stored.Len() != 1 || m.open != 0 {
			s.Errorf("%d copies, %d items, %d open, want one copy, one item, none open", n, stored.Len(), m.open)
		}
		s.Noted(journal.Scheduled, 2)
	})
}

func TestOutageHidesWhatTheTableDidNotAnswerFor(t *testing.T) {
	alone(t, func(s *stand) {
		batch := []message{s.hidden(2), {Message: received("answered")}}
		events := []pending{s.version(&batch[0], "a", 1), s.version(&batch[1], "b", 1)}
		docs := collapse(s.in, events)
		docs[0].asked, docs[0].err = &events[0], errors.New("away")
		outage{s.in, hider{s.in, s.live}, launcher{}, s.noID}.handle(s.Context(), batch, events, docs, false)
		if n := s.Notes.Of(journal.Unreachable); len(n) != 1 || n[0].Count != 1 {
			s.Errorf("notes %+v, want one message", n)
		}
		s.invisible(2 * s.in.config.Queues.Visibility)
	})
}

func TestHoldStartsOneFlightOfWhatIsHeld(t *testing.T) {
	alone(t, func(s *stand) {
		batch := []message{{Message: received("1")}, {Message: received("2"), failed: true}, {Message: received("3")}}
		events := []pending{s.version(&batch[0], "a", 1), s.version(&batch[1], "b", 1), s.version(&batch[2], "c", 1)}
		collapse(s.in, events)
		events[0].hold, events[1].hold, events[0].due = true, true, usecasetest.Now().Add(5*time.Second)
		var woken atomic.Pointer[flight.State]
		machine := memory.NewMachine(s.in.clock, memory.MachineSettings{},
			func(_ context.Context, st flight.State) (flight.State, error) {
				seen := st
				woken.Store(&seen)
				st.Done = true
				return st, nil
			})
		defer machine.Close()
		asked := admitted{flight: "flight-1", at: s.in.start}
		holder{s.in, hider{s.in, s.live}, launcher{s.in, s.flights, machine}}.hold(s.Context(), batch, events, asked)
		m := usecasetest.Must(s.flights.Get(s.Context(), "flight-1"))(s)
		if len(m.Records) != 1 || m.Records[0].Message.ID != "1" || m.Records[0].Events[0].Admitted != usecasetest.Now() {
			s.Errorf("manifest %+v, want only the first message", m)
		}
		time.Sleep(6 * time.Second)
		if st := woken.Load(); st == nil || st.Flight != "flight-1" {
			s.Errorf("woken %+v, want the flight", st)
		}
		s.Noted(journal.Held, 1)
		s.Noted(journal.Launched, 1)
	})
}

func TestAnObjectIsReadToItsEnd(t *testing.T) {
	alone(t, func(s *stand) {
		m, bulk := &message{Message: received("1"), events: 1, open: 1}, s.Queue("bulk", time.Hour)
		open := func(_ context.Context, _, _, _ string, from int64) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("{}\n{}\n"[from:])), nil
		}
		o := event.Object{Bucket: "b", Key: "k", Version: "01", PerSecond: 10, Source: "native", Bytes: 6, MaxText: 100}
		dead := objectReader{s.in, s.table, open, bulk, s.live}.read(s.Context(), []object{{pending{msg: m}, &o}})
		if n := bulk.Counts().Visible; len(dead) != 0 || n != 2 || m.open != 0 {
			s.Errorf("dead letters %+v, %d lines, %d open, want two lines and none open", dead, n, m.open)
		}
		s.Noted(journal.ObjectDone, 1)
	})
}

func TestArchiveStoresFirstReceivesOnce(t *testing.T) {
	alone(t, func(s *stand) {
		again := received("2")
		again.ReceiveCount = 2
		a := archiver{invocation: s.in, archive: memory.NewArchive(s.in.clock, time.Hour), newID: flightOne}
		for range 2 {
			a.store(s.Context(), []queue.Message{received("1"), again})
		}
		if n := s.Notes.Of(journal.Archived); len(n) != 1 || n[0].Count != 1 {
			s.Errorf("notes %+v, want one message archived once", n)
		}
	})
}

func TestAnswerKeepsWhatIsAbsentOpenOrFailed(t *testing.T) {
	t.Parallel()
	got := answer([]queue.Message{received("absent")}, []message{
		{Message: received("done")}, {Message: received("open"), open: 1}, {Message: received("failed"), failed: true},
	})
	if want := []string{"absent", "open", "failed"}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}
