// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// bury writes a tombstone that is newer than every version of a document.
func (b *bench) bury(id string) error {
	b.Helper()
	return b.service("bury-").Bury(b.Context(), reconcile.Burial{
		Doc: usecasetest.Doc(id), By: "somebody", Why: "test",
		Key: func(row shard.Row, _ shard.InSink) (shard.OrderKey, error) {
			if row.Committed.IsFinal() {
				return row.Committed, nil
			}
			v, err := shard.FirstVersion(shard.ClassInt)
			if err != nil {
				return "", err
			}
			return shard.Final(v)
		},
	})
}

func (b *bench) buried(id string) {
	b.Helper()
	row := b.Row(usecasetest.Doc(id))
	if !row.Committed.IsFinal() || row.CommittedOp != shard.Delete || row.Owner != "" || row.Pending != "" ||
		row.ExpiresAt == 0 || row.Content != "" {
		b.Errorf("row %+v, want a committed tombstone without a lease", row)
	}
	if got := b.held(id); got != "" {
		b.Errorf("the sink still has version %s", got)
	}
	for _, version := range []string{"6", strings.Repeat("9", 40)} {
		late := b.EventOf(fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":%q,"data":{}}`, id, version))
		if shard.Judge(row, late.Key, late.Class, false) != shard.Stale {
			b.Errorf("version %s is not stale", version)
		}
	}
}

func TestABurialDeletesAndRefusesEveryVersion(t *testing.T) {
	for name, make := range map[string]func(b *bench){
		"a document":                         func(b *bench) { b.row("a", 5, shard.Put); b.stored("a", 5, 10*time.Minute) },
		"an unknown document":                func(*bench) {},
		"a document without a row":           func(b *bench) { b.stored("a", 5, 10*time.Minute) },
		"a document that lull did not write": func(b *bench) { b.stranger("a") },
		"a deleted document":                 func(b *bench) { b.row("a", 5, shard.Delete) },
		"a document with a waiting version": func(b *bench) {
			b.row("a", 5, shard.Put)
			b.stored("a", 5, 10*time.Minute)
			b.Admit(b.EventOf(usecasetest.Put("a", 6)))
		},
		"a document whose claim got no answer": func(b *bench) {
			b.row("a", 5, shard.Put)
			b.stored("a", 5, 10*time.Minute)
			e := b.EventOf(usecasetest.Put("a", 6))
			b.Admit(e)
			b.Claim(e)
			time.Sleep(time.Minute)
			b.stored("a", 6, 50*time.Second)
		},
		"a version that is dead": func(b *bench) {
			b.row("a", 5, shard.Put, func(r *shard.Row) { r.Dead = b.key("a", 6) })
			b.stored("a", 5, 10*time.Minute)
		},
	} {
		for _, versions := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, versions %t", name, versions), func(t *testing.T) {
				playIn(t, versions, func(b *bench) {
					make(b)
					usecasetest.OK(b, b.bury("a"))
					b.buried("a")
					b.Noted(journal.Removed, 1)
					before := b.Row(usecasetest.Doc("a"))
					if err := b.bury("a"); err != nil || b.Row(usecasetest.Doc("a")) != before {
						b.Errorf("the second try returned %v, and changed the row to %+v", err, b.Row(usecasetest.Doc("a")))
					}
					time.Sleep(time.Hour)
					b.stranger("a") // another program wrote the document again
					time.Sleep(time.Second)
					if err := b.bury("a"); err != nil {
						b.Error(err)
					}
					b.buried("a")
				})
			})
		}
	}
}

func TestABurialWaitsForWhoeverWorksOnTheDocument(t *testing.T) {
	type row struct {
		make func(b *bench)
		says string
	}
	usecasetest.Table(t, play, map[string]row{
		"leased": {func(b *bench) {
			e := b.EventOf(usecasetest.Put("a", 6))
			b.Admit(e)
			b.Claim(e)
		}, "being written until"},
		"the sink is paused": {func(b *bench) {
			b.Write(shard.Pause("search", usecasetest.Now(), "ann", ""))
		}, "is paused"},
		"the circuit is open": {func(b *bench) {
			b.Write(shard.Trip("search", usecasetest.Now(), usecasetest.Now().Add(time.Hour), 1))
		}, "does not accept writes"},
		"a rebuild": {func(b *bench) {
			b.Write(shard.Rebuild("search", "content", "new", usecasetest.Now()))
		}, "being rebuilt"},
	}, func(b *bench, tt row) {
		b.row("a", 5, shard.Put)
		b.stored("a", 5, 10*time.Minute)
		tt.make(b)
		before := b.Row(usecasetest.Doc("a"))
		err := b.bury("a")
		if !errors.Is(err, reconcile.ErrMoving) || !strings.Contains(err.Error(), tt.says) ||
			b.Row(usecasetest.Doc("a")) != before || b.held("a") != "5" {
			b.Errorf("got %v, row %+v; want the row unchanged: %s", err, b.Row(usecasetest.Doc("a")), tt.says)
		}
	})
}

// All waiting documents may be done before any flight probes the sink. The circuit would then stay
// open until an event arrives. So Bury pings the sink.
func TestABurialAsksASinkWhoseCircuitWasOpenLongEnough(t *testing.T) {
	for name, answers := range map[string]bool{"the sink answers": true, "the sink does not answer": false} {
		t.Run(name, func(t *testing.T) {
			play(t, func(b *bench) {
				b.row("a", 5, shard.Put)
				b.stored("a", 5, 10*time.Minute)
				b.Write(shard.Trip("search", usecasetest.Now(), usecasetest.Now().Add(time.Minute), 1))
				time.Sleep(2 * time.Minute)
				if !answers {
					b.inject = usecasetest.Fails("ping", fault.FailBefore, 100)
				}
				err := b.bury("a")
				health := b.Row(shard.HealthRow("search"))
				switch {
				case answers && (err != nil || health.OpenUntil != 0 || health.Rate == 0):
					b.Errorf("error %v, health %+v; want the circuit closed to a pace", err, health)
				case answers:
					b.buried("a")
				case !errors.Is(err, reconcile.ErrMoving) || health.OpenUntil == 0 || b.held("a") != "5":
					b.Errorf("error %v, health %+v; want the document unchanged", err, health)
				}
				if answers {
					return
				}
				b.inject = usecasetest.Healthy
				if err := b.bury("a"); !errors.Is(err, reconcile.ErrMoving) {
					b.Errorf("error during another probe: %v", err)
				}
				time.Sleep(time.Minute) // the time of the other probe is over
				usecasetest.OK(b, b.bury("a"))
				b.buried("a")
			})
		})
	}
}

// If a call fails, before or after it was applied, the next try completes the work. Between the two
// tries, no older version can be written.
func TestABurialGoesOnAfterAnyFailure(t *testing.T) {
	for _, call := range []string{"ADMIT", "CLAIM", "_bulk", "COMMIT", "Read"} {
		for what, verdict := range map[string]fault.Verdict{"before": fault.FailBefore, "after": fault.FailAfter} {
			t.Run(call+" fails "+what, func(t *testing.T) {
				play(t, func(b *bench) {
					b.row("a", 5, shard.Put)
					b.stored("a", 5, 10*time.Minute)
					b.inject = usecasetest.Fails(call, verdict, 100)
					err := b.bury("a")
					if err == nil && call != "_bulk" {
						b.Errorf("%s failed, but bury returned no error", call)
					}
					b.inject = usecasetest.Healthy
					time.Sleep(time.Minute)
					usecasetest.OK(b, b.bury("a"))
					b.buried("a")
				})
			})
		}
	}
}

// If the operator does not try again, the next repair completes the tombstone.
func TestARepairCompletesABurialThatStopped(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("known %t", known), func(t *testing.T) {
			play(t, func(b *bench) {
				if known {
					b.row("a", 5, shard.Put)
				}
				b.stored("a", 5, 10*time.Minute)
				b.inject = usecasetest.Fails("COMMIT", fault.FailBefore, 100) // the row does not record the delete
				if err := b.bury("a"); err == nil || b.held("a") != "" {
					b.Fatalf("bury returned %v, want an error, and the document deleted", err)
				}
				b.inject = usecasetest.Healthy
				time.Sleep(time.Hour)
				for _, dry := range []bool{true, false, false} {
					r, err := b.run(func(o *reconcile.Order) { o.DryRun = dry })
					if err != nil || b.remaining() != 0 || dry != (r.Waiting == 1) {
						b.Errorf("dry run %t: report %+v, error %v", dry, r, err)
					}
				}
				b.buried("a")
			})
		})
	}
}

// If the operator's clock is ahead, a lease that is in use must not look expired. If the clock is
// behind, the tombstone still gets a greater fence than the existing document.
func TestABurialByAClockThatIsOff(t *testing.T) {
	playIn(t, false, func(b *bench) {
		b.skew = 4 * time.Minute
		b.row("a", 5, shard.Put, func(r *shard.Row) { r.LastWrite = usecasetest.Now() })
		b.stored("a", 5, 0)
		e := b.EventOf(usecasetest.Put("a", 6))
		b.Admit(e)
		time.Sleep(time.Second)
		b.Claim(e)
		if err := b.bury("a"); !errors.Is(err, reconcile.ErrMoving) {
			b.Errorf("with a clock that is ahead, under another lease: %v", err)
		}
		// The same holds if another flight claims the document after bury's read and before bury's
		// claim.
		b.row("b", 5, shard.Put)
		b.stored("b", 5, 10*time.Minute)
		other := b.EventOf(usecasetest.Put("b", 6))
		b.inject = usecasetest.At("ADMIT", func() {
			b.Admit(other)
			b.Claim(other)
		})
		err := b.bury("b")
		if !errors.Is(err, reconcile.ErrMoving) || !b.Row(usecasetest.Doc("b")).Leased(usecasetest.Now()) {
			b.Errorf("with a clock that is ahead, and a new lease of another flight: %v, %+v", err, b.Row(usecasetest.Doc("b")))
		}
		b.inject = usecasetest.Healthy
		b.skew = -4 * time.Minute
		b.row("c", 5, shard.Put, func(r *shard.Row) { r.LastWrite = usecasetest.Now() })
		b.stored("c", 5, 0)
		if err := b.bury("c"); err != nil {
			b.Errorf("with a clock that is behind: %v", err)
		}
		b.buried("c")
	})
}

func TestABurialThatTheSinkRefusesGivesItsLeaseBack(t *testing.T) {
	play(t, func(b *bench) {
		b.row("a", 5, shard.Put)
		b.stored("a", 5, 10*time.Minute)
		b.sink.Script(usecasetest.Doc("a"), memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Refused, Reason: "not allowed"}})
		if err := b.bury("a"); err == nil || !strings.Contains(err.Error(), "refused: not allowed") {
			b.Errorf("got error %v, want the reason of the refusal", err)
		}
		if row := b.Row(usecasetest.Doc("a")); row.Owner != "" || row.Committed != b.key("a", 5) {
			b.Errorf("row %+v, want no lease, and version 5 committed", row)
		}
		time.Sleep(time.Second)
		if err := b.bury("a"); err != nil {
			b.Error(err)
		}
		b.buried("a")
	})
}
