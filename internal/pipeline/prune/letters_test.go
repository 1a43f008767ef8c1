// SPDX-License-Identifier: Apache-2.0

package prune_test

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/pipeline/prune"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

func TestDeadLetterGoesOnlyWhenItsVersionOrANewerOneIsCommitted(t *testing.T) {
	t.Parallel()
	type row struct {
		row  func(b *bench, d shard.DocID)
		gone bool
	}
	usecasetest.Table(t, play, map[string]row{
		"no row":                     {func(*bench, shard.DocID) {}, false},
		"dead":                       {func(b *bench, d shard.DocID) { b.admit(d, 5); b.park(d, 5) }, false},
		"an older version committed": {func(b *bench, d shard.DocID) { b.commit(d, 4, shard.Put) }, false},
		"a newer version pending":    {func(b *bench, d shard.DocID) { b.admit(d, 6) }, false},
		"this version committed":     {func(b *bench, d shard.DocID) { b.commit(d, 5, shard.Put) }, true},
		"a newer version committed":  {func(b *bench, d shard.DocID) { b.commit(d, 6, shard.Delete) }, true},
		"an operator took the version back, and another version died since": {func(b *bench, d shard.DocID) {
			b.commit(d, 4, shard.Put)
			b.Change(d, func(r *shard.Row) { r.TakenBack = shard.KeySetOf(b.version(d, 5).Key) })
			b.park(d, 6)
		}, true},
		"versions of another class": {func(b *bench, d shard.DocID) {
			v, err := shard.ParseVersion(shard.ClassLex, "zzz")
			if err != nil {
				b.Fatal(err)
			}
			k, _ := shard.NewOrderKey(shard.Parts{Version: v})
			b.Write(shard.Admit(shard.Admission{Doc: d, Key: k, Class: shard.ClassLex, Flight: "f", Now: now()}))
			l := shard.Lease{Doc: d, Key: k, Token: "t", At: now()}
			b.Write(shard.Claim(shard.Bid{Doc: d, Key: k, Token: "t", Now: now(), Until: now().Add(time.Second)}))
			b.Write(shard.Commit(l, shard.Put, now(), 1<<40, b.Row(d)))
		}, false},
	}, func(b *bench, tt row) {
		tt.row(b, doc(1))
		id := b.letter(doc(1), 5, deadletter.Contract)
		undecodable := b.letter("", 5, deadletter.Undecodable)
		rep := b.run()
		if _, ok := b.Facts(id); ok == tt.gone || rep.Letters.Superseded == 1 != tt.gone {
			b.Errorf("dead letter exists: %t, report %+v; want it deleted: %t", ok, rep.Letters, tt.gone)
		}
		if _, ok := b.Facts(undecodable); !ok {
			b.Error("a dead letter without a version was deleted")
		}
	})
}

func TestTransientDeadLettersAreSentAgainABoundedNumberOfTimes(t *testing.T) {
	play(t, func(b *bench) {
		d := doc(1)
		var waits []time.Duration
		b.letter(doc(2), 1, deadletter.RejectedBySink) // only an operator may redrive this dead letter
		b.admit(d, 1)
		b.park(d, 1)
		id := b.letter(d, 1, deadletter.Refusals)
		died := time.Now()
		for range 3 * 288 {
			rep := b.next()
			if rep.Letters.Redriven == 0 {
				continue
			}
			waits = append(waits, time.Since(died))
			if r := b.Row(d); r.Dead != "" {
				b.Errorf("row %+v still marks the version dead", r)
			}
			ms, err := b.live.Receive(b.Context(), 10, 0)
			if err != nil || len(ms) != 1 {
				b.Fatalf("%d copies, error %v; want 1", len(ms), err)
			}
			b.live.Delete(b.Context(), []string{ms[0].Receipt})
			b.admit(d, 1) // the sink refuses the copy again
			b.park(d, 1)
			b.letter(d, 1, deadletter.Refusals)
			died = time.Now()
		}
		if len(waits) != b.Config.Retry.AutoRedrives {
			b.Fatalf("redriven after %v, want %d times", waits, b.Config.Retry.AutoRedrives)
		}
		for i, want := range []time.Duration{15 * time.Minute, time.Hour, 4 * time.Hour} {
			if waits[i] < want || waits[i] > want+2*b.Config.Lifecycle.PruneEvery {
				b.Errorf("redrive %d was after %s, want about %s", i, waits[i], want)
			}
		}
		if f, ok := b.Facts(id); !ok || f.Auto != 3 || f.Redrives != 3 || f.State != deadletter.Parked {
			b.Errorf("dead letter %+v, there %t; want it parked after three automatic redrives", f, ok)
		}
	})
}

func TestNothingIsRedrivenByItselfWhileTheSinkIsNotWell(t *testing.T) {
	play(t, func(b *bench) {
		b.letter(doc(1), 1, deadletter.DeadDeadline)
		b.Write(shard.Trip("search", now(), now().Add(time.Minute), 1))
		time.Sleep(time.Hour)
		if rep := b.run(); rep.Letters.Redriven != 0 {
			b.Errorf("report %+v, want no redrive", rep.Letters)
		}
		probe := now().Add(time.Second)
		b.Write(shard.Probe("search", now(), probe))
		b.Write(shard.Close("search", probe, now(), shard.RestartPace))
		if rep := b.next(); rep.Letters.Redriven != 1 {
			b.Errorf("report %+v, want a redrive: the sink is back", rep.Letters)
		}
	})
}

func TestWhatMayBeInTheSinkIsRedrivenFirst(t *testing.T) {
	play(t, func(b *bench) {
		b.Config.Retry.AutoRedrives = 1
		d := doc(1)
		b.letter(doc(2), 1, deadletter.ReceiveCount)
		b.admit(d, 2)
		b.claim(d, 2) // the claim got no answer, and SQS moves the message
		time.Sleep(14 * time.Second)
		b.park(d, 2)
		id := b.letter(d, 2, deadletter.ReceiveCount)
		b.admit(d, 1) // version 1 waits for version 2
		if rep := b.run(); rep.Letters.Redriven != 1 || rep.Letters.Blocking != 0 {
			b.Errorf("report %+v, want the dead letter redriven at once", rep.Letters)
		}
		if f, _ := b.Facts(id); f.State != deadletter.Redriven {
			b.Errorf("dead letter %+v, want it redriven", f)
		}
		b.admit(d, 2)
		b.park(d, 2)
		b.letter(d, 2, deadletter.ReceiveCount) // the copy becomes a dead letter again
		if rep := b.next(); rep.Letters.Redriven != 0 || rep.Letters.Blocking != 1 {
			b.Errorf("report %+v, want no automatic redrive and an alarm", rep.Letters)
		}
		if n := b.Notes.Of(journal.Blocked); len(n) != 1 || n[0].Doc != d {
			b.Errorf("alarms %+v, want one", n)
		}
	})
}

func TestRedrivenAndHeardOfNoMoreIsParkedAgain(t *testing.T) {
	play(t, func(b *bench) {
		id := b.letter(doc(1), 1, deadletter.Contract)
		if err := b.Letters.MarkRedriven(b.Context(), id, time.Now(), false); err != nil {
			b.Fatal(err)
		}
		time.Sleep(b.Config.Queues.DeadLetterRetention - time.Minute)
		if rep := b.run(); rep.Letters.Parked != 0 {
			b.Errorf("report %+v: the dead letter was parked again too early", rep.Letters)
		}
		rep := b.next()
		if f, ok := b.Facts(id); !ok || f.State != deadletter.Parked || f.Redrives != 1 || rep.Letters.Parked != 1 {
			b.Errorf("dead letter %+v, exists %t, report %+v; want it parked, with the time of its redrive", f, ok, rep.Letters)
		}
	})
}

// A dead letter without an order key belongs to no row, so nothing says that its message is done.
// The message may also have expired in its queue. Dropping the dead letter would then lose the
// event.
func TestARedrivenDeadLetterWithoutAKeyStays(t *testing.T) {
	play(t, func(b *bench) {
		m := queue.Message{ID: "m", Body: put("a", 1), Sent: time.Now()}
		l := deadletter.New(m, deadletter.Undecodable, "", "", "", 0, time.Now())
		if _, err := b.Letters.Park(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		if err := b.Letters.MarkRedriven(b.Context(), l.ID, time.Now(), false); err != nil {
			b.Fatal(err)
		}
		b.commit(doc("a"), 1, shard.Put) // the settings were fixed, so the message has this version now
		is := func(state deadletter.State, rep prune.Report, parked int) {
			b.Helper()
			got := rep.Letters
			if f, ok := b.Facts(l.ID); !ok || f.State != state || got.Superseded != 0 || got.Parked != parked {
				b.Errorf("dead letter %+v, exists %t, report %+v; want it %s", f, ok, got, state)
			}
		}
		is(deadletter.Redriven, b.run(), 0)
		time.Sleep(b.Config.Queues.DeadLetterRetention)
		is(deadletter.Parked, b.run(), 1)
		is(deadletter.Parked, b.next(), 0)
	})
}

// A message is sent once for all of its dead letters. An earlier version sent the whole message for
// each dead letter.
func TestAMessageIsSentOnceByItselfForAllOfItsDeadLetters(t *testing.T) {
	play(t, func(b *bench) {
		const n = 150 // more dead letters than a page has
		m := queue.Message{ID: "m", Body: "a message of many events", Sent: time.Now()}
		park := func(i int, reason deadletter.Reason) string {
			l := deadletter.New(m, reason, "", doc(i), b.key(1), i, time.Now())
			l.Sink, l.Lane = "search", "live"
			if _, err := b.Letters.Park(b.Context(), l); err != nil {
				b.Fatal(err)
			}
			return l.ID
		}
		for i := range n {
			park(i, deadletter.Refusals)
		}
		lasting := park(n, deadletter.RejectedBySink)
		time.Sleep(20 * time.Minute)
		if rep := b.run(); rep.Letters.Redriven != n {
			b.Errorf("report %+v, want all dead letters that may be redriven automatically", rep.Letters)
		}
		if got := b.live.Counts().Total(); got != 1 {
			b.Errorf("the message was sent %d times, want once", got)
		}
		if f, _ := b.Facts(lasting); f.State != deadletter.Parked {
			b.Errorf("dead letter %+v, want it parked, because an operator decides", f)
		}
		if rep := b.next(); rep.Letters.Redriven != 0 {
			b.Errorf("report %+v, want nothing sent twice", rep.Letters)
		}
	})
}
