// SPDX-License-Identifier: Apache-2.0

package receive_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

func openly(c *config.Config) { c.TableOutage = config.TableOutageOpen }

// away makes every call to the table fail.
var away = decide(func(op fault.Op) fault.Verdict {
	if op.Service == fault.Table {
		return fault.FailBefore
	}
	return fault.OK
})

// written returns the documents of flights that make outage writes, once each flight has woken.
func (b *bench) written() (docs []shard.DocID) {
	b.Helper()
	time.Sleep(time.Second)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.woken {
		if !s.Outage {
			continue
		}
		m, err := b.flights.Get(b.Context(), s.Flight)
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range m.Records {
			for _, e := range r.Events {
				docs = append(docs, e.Doc)
				if !e.Open() { // prune recognises such a manifest by this
					b.Errorf("entry %s has an admitted time %d, want none for an outage write", e.Doc, e.Admitted)
				}
			}
		}
	}
	slices.Sort(docs)
	return docs
}

// A refusal and a throttle are answers, so promise 1 must not be suspended for such a table. The
// same holds for a table that can be read.
func TestATableThatAnswersIsNotAway(t *testing.T) {
	fail := func(verdicts map[string]fault.Verdict) fault.Injector {
		return decide(func(op fault.Op) fault.Verdict {
			if op.Call == "ADMIT" {
				return verdicts[op.Doc.ID()]
			}
			return verdicts[op.Call]
		})
	}
	const lost = fault.FailBefore
	type row struct {
		verdicts    map[string]fault.Verdict
		unreachable int
		open        []shard.DocID
	}
	usecasetest.Table(t, stage(openly).play, map[string]row{
		"all throttled": {map[string]fault.Verdict{
			"a": fault.Throttle, "b": fault.Throttle,
			"c": fault.Throttle, "Read": lost,
		}, 0, nil},
		"one throttled, two refused": {map[string]fault.Verdict{"b": fault.Throttle, "Read": lost}, 0, nil},
		"one lost, two refused":      {map[string]fault.Verdict{"b": lost, "Read": lost}, 0, nil},
		"one lost, one throttled": {map[string]fault.Verdict{
			"a": lost, "b": fault.Throttle, "c": lost,
			"Read": lost,
		}, 0, nil},
		"nothing can be written": {map[string]fault.Verdict{"a": lost, "b": lost, "c": lost}, 1, nil},
		"nothing can be written or read": {
			map[string]fault.Verdict{"a": lost, "b": lost, "c": lost, "Read": lost},
			1,
			[]shard.DocID{doc("a"), doc("b"), doc("c")},
		},
	}, func(b *bench, c row) {
		b.admit(put("a", 2))
		b.admit(put("c", 2))
		b.inject = fail(c.verdicts)
		b.send(put("a", 1), put("b", 1), put("c", 1))
		b.keeps(3, "all three")
		b.Noted(journal.Unreachable, c.unreachable)
		if got := b.written(); !slices.Equal(got, c.open) {
			b.Errorf("outage writes of %v, want %v", got, c.open)
		}
	})
}

// An invocation whose own time is over cannot tell whether the table is unreachable.
func TestAnInvocationWithoutTimeCallsNoTableUnreachable(t *testing.T) {
	play(t, openly, func(b *bench) {
		b.send(put("a", 1))
		batch, err := b.live.Receive(b.Context(), 1, 0)
		if err != nil {
			b.Fatal(err)
		}
		h, _ := b.handler()
		ended, cancel := context.WithCancel(b.Context())
		cancel()
		if kept := h.Handle(ended, batch); len(kept) != 1 {
			b.Errorf("kept %v, want the message", kept)
		}
		b.Noted(journal.Failed, 1)
		b.Noted(journal.Unreachable, 0)
	})
}

// A table that hangs uses only its part of the invocation's time. After that, the messages are
// hidden, so that they wait for the table.
func TestATableThatHangsIsWaitedOut(t *testing.T) {
	play(t, nil, func(b *bench) {
		b.send(put("a", 1), put("b", 1))
		if _, err := b.live.Receive(b.Context(), 1, 0); err != nil { // the first message has been received before
			b.Fatal(err)
		}
		time.Sleep(41 * time.Second)
		h, _ := b.handler()
		h.Shards = table{err: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		batch, err := b.live.Receive(b.Context(), 2, 0)
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(b.Context(), b.Config.Receive.Timeout-500*time.Millisecond)
		defer cancel()
		h.Handle(ctx, batch)
		n := b.Notes.Of(journal.Unreachable)
		if len(n) != 1 || n[0].Count != 2 {
			b.Fatalf("notes %+v, want one of two messages", n)
		}
		// The new message waits for 40 seconds, and the redelivered message for 80 seconds.
		for _, want := range []time.Duration{40 * time.Second, 80 * time.Second} {
			time.Sleep(40*time.Second - time.Millisecond)
			back, err := b.live.Receive(b.Context(), 2, 0)
			if err != nil || len(back) != 0 {
				b.Errorf("%d messages are visible before %s (%v)", len(back), want, err)
			}
			time.Sleep(time.Millisecond)
			if back, err = b.live.Receive(b.Context(), 2, 0); err != nil || len(back) != 1 {
				b.Fatalf("%d messages are visible after %s (%v), want one", len(back), want, err)
			}
			b.live.Delete(b.Context(), []string{back[0].Receipt})
		}
	})
}

// Each message is written once. A message that arrives while others wait is written, too.
func TestANewMessageBesideARedeliveredOneIsWrittenOpen(t *testing.T) {
	play(t, openly, func(b *bench) {
		b.inject = away
		b.send(put("a", 1))
		b.poll()
		time.Sleep(41 * time.Second)
		b.send(put("b", 1))
		b.poll()
		if got := b.written(); !slices.Equal(got, []shard.DocID{doc("a"), doc("b")}) {
			b.Errorf("outage writes of %v, want both documents, each once", got)
		}
	})
}

// If the table becomes unreachable between two answers, a document is only half judged. A version
// that its row marks dead is still never written.
func TestADeadVersionIsNotWrittenOpen(t *testing.T) {
	play(t, openly, func(b *bench) {
		b.Change(doc("a"), func(r *shard.Row) { r.VersionClass, r.Dead = shard.ClassInt, b.EventOf(put("a", 2)).Key })
		admits := 0
		b.inject = decide(func(op fault.Op) fault.Verdict {
			if op.Call == "ADMIT" {
				admits++
			}
			if op.Service != fault.Table || op.Call == "ADMIT" && admits == 1 {
				return fault.OK
			}
			return fault.FailBefore
		})
		b.send(put("a", 1), put("a", 2))
		b.keeps(2, "both")
		for _, m := range b.manifests() {
			for _, r := range m.Records {
				if r.Message.Body == put("a", 2) {
					b.Error("the version that is a dead letter is held, want it not written")
				}
			}
		}
	})
}

// table is a table whose calls all return the error of err.
type table struct {
	shard.Store
	err func(ctx context.Context) error
}

func (s table) Read(ctx context.Context, _ []shard.DocID, _ shard.Consistency) ([]shard.Row, error) {
	return nil, s.err(ctx)
}

func (s table) Write(ctx context.Context, _ shard.Write) (shard.Row, error) {
	return shard.Row{}, s.err(ctx)
}

// coded is an error with a code, as AWS's services return it.
type coded struct{ error }

func (coded) ErrorCode() string { return "AccessDeniedException" }

func TestAnUnreachableTableIsNotedWithTheKindOfError(t *testing.T) {
	secret := errors.New("do not quote me")
	for want, err := range map[string]error{
		"AccessDeniedException": backoff.Permanent(coded{secret}),
		"no answer in time":     context.DeadlineExceeded,
		"refused for good":      backoff.Permanent(secret),
		"no answer":             secret,
	} {
		t.Run(want, func(t *testing.T) {
			play(t, nil, func(b *bench) {
				b.send(put("a", 1))
				h, _ := b.handler()
				h.Shards = table{err: func(context.Context) error { return err }}
				batch, bad := b.live.Receive(b.Context(), 1, 0)
				if bad != nil {
					b.Fatal(bad)
				}
				h.Handle(b.Context(), batch)
				if n := b.Notes.Of(journal.Unreachable); len(n) != 1 || n[0].Detail != want {
					b.Errorf("notes %+v, want one with %q", n, want)
				}
			})
		})
	}
}

// tableAway fails every call to the table. The wrapped injector decides all other calls.
type tableAway struct{ fault.Injector }

func (d tableAway) Decide(ctx context.Context, v *fault.Invocation, op fault.Op) fault.Verdict {
	if op.Service == fault.Table {
		return fault.FailBefore
	}
	return d.Injector.Decide(ctx, v, op)
}
