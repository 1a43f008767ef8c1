// SPDX-License-Identifier: Apache-2.0

package searchability_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/searchability"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/searchable"
	_ "github.com/lullhq/lull/source/builtin"
)

// bench has the rows of a stack whose engine refreshes every second, and no engine to ask.
type bench struct {
	*testing.T
	*searchability.Service

	rig *usecasetest.Rig
}

const refresh = time.Second

// story runs a test on a bench, in virtual time.
func story(t *testing.T, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rig := usecasetest.Open(t, func(c *config.Config) {
			s, interval := c.Sinks["search"], refresh
			s.Refresh = &interval
			c.Sinks["search"] = s
		})
		f(&bench{t, &searchability.Service{Shards: rig.Shards, Config: &rig.Config, Clock: clock.System{}}, rig})
	})
}

func (b *bench) admit(version int) { b.rig.Admit(b.rig.EventOf(usecasetest.Put("a", version))) }

func (b *bench) commit(version int) {
	e := b.rig.EventOf(usecasetest.Put("a", version))
	b.rig.Admit(e)
	b.rig.Commit(b.rig.Claim(e), shard.Put)
}

func (b *bench) change(f func(*shard.Row)) { b.rig.Change("content#a", f) }

func (b *bench) health(f func(*shard.Row)) { b.rig.Change(shard.HealthRow("search"), f) }

// ask asks about a version of the document a.
func (b *bench) ask(version string, wait time.Duration) searchable.Sink {
	b.Helper()
	a, err := b.Answer(b.Context(), searchable.Question{Key: "content#a", Version: version, Wait: wait})
	if err != nil || len(a.Sinks) != 1 || a.Searchable != a.Sinks[0].Searchable {
		b.Fatalf("got %+v, %v", a, err)
	}
	return a.Sinks[0]
}

// Without an engine to ask, the place of a version comes from the rows.
func TestAnAnswerSaysWhereTheVersionIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version string
		set     func(b *bench)
		place   searchable.Place
		by      string
		why     string
	}{
		"nothing is known": {"7", func(*bench) {}, searchable.Unseen, "", "no event with this version was admitted"},
		"it waits":         {"7", func(b *bench) { b.admit(7) }, searchable.Waiting, "", "version 7 waits for the end of its burst"},
		"a newer version waits": {
			"6", func(b *bench) { b.admit(7) }, searchable.Waiting, "7", "version 7 waits for the end of its burst",
		},
		"only an older version waits": {
			"8", func(b *bench) { b.admit(7) }, searchable.Unseen, "", "no event with this version was admitted",
		},
		"it is claimed": {
			"7", func(b *bench) { b.admit(7); b.rig.Claim(b.rig.EventOf(usecasetest.Put("a", 7))) }, searchable.Claimed, "", "is being written",
		},
		"the sink is paused": {
			"7", func(b *bench) { b.admit(7); b.health(func(r *shard.Row) { r.PausedAt = usecasetest.Now() }) },
			searchable.Paused, "", "an operator paused",
		},
		"the sink is unhealthy": {
			"7", func(b *bench) {
				b.admit(7)
				b.health(func(r *shard.Row) { r.OpenUntil = usecasetest.Now().Add(time.Hour) })
			},
			searchable.Unhealthy, "", "unhealthy",
		},
		"it was refused": {
			"7", func(b *bench) {
				b.admit(7)
				b.change(func(r *shard.Row) { r.Refusals, r.LastError = 1, "refused: 500" })
			}, searchable.Retrying, "", "refused: 500",
		},
		"it got no answer": {
			"7", func(b *bench) { b.admit(7); b.change(func(r *shard.Row) { r.Attempts = 2 }) }, searchable.Retrying, "", "no answer",
		},
		"it is a dead letter": {
			"7", func(b *bench) {
				b.change(func(r *shard.Row) { r.Dead = b.rig.EventOf(usecasetest.Put("a", 7)).Key })
			}, searchable.Dead, "", "dead letter",
		},
		"a newer version is a dead letter": {
			"6", func(b *bench) {
				b.change(func(r *shard.Row) { r.Dead = b.rig.EventOf(usecasetest.Put("a", 7)).Key })
			}, searchable.Unseen, "", "version 7 is a dead letter",
		},
		"an older version is committed": {"8", func(b *bench) { b.commit(7) }, searchable.Unseen, "", "was admitted"},
		"a newer version is committed":  {"6", func(b *bench) { b.commit(7) }, searchable.Committed, "7", "not certainly over"},
		"it is committed":               {"7", func(b *bench) { b.commit(7) }, searchable.Committed, "", "not certainly over"},
		"the committed version":         {"", func(b *bench) { b.commit(7) }, searchable.Committed, "", "not certainly over"},
		"no version is committed":       {"", func(b *bench) { b.admit(7) }, searchable.Waiting, "", "waits for the end"},
		"no version at all":             {"", func(*bench) {}, searchable.Unseen, "", "no version is committed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, func(b *bench) {
				c.set(b)
				in := b.ask(c.version, 0)
				if in.Searchable != searchable.No || in.Place != c.place || in.By != c.by ||
					!strings.Contains(in.Why, c.why) {
					t.Errorf("got %+v, want no, %s, superseded by %q, because %q", in, c.place, c.by, c.why)
				}
			})
		})
	}
}

// Without a wait, a yes comes a refresh interval and a lease after the row's time, because that
// time is from another clock. A question that waits has seen the commit itself.
func TestAYesComesWhenTheRefreshIntervalIsOver(t *testing.T) {
	t.Parallel()
	story(t, func(b *bench) {
		b.commit(7)
		if in := b.ask("7", refresh-1); in.Searchable != searchable.No || in.Until.IsZero() {
			t.Errorf("before the interval is over: %+v", in)
		}
		began := time.Now()
		in := b.ask("7", searchable.MaxWait)
		if in.Searchable != searchable.Yes || in.How != searchable.Refreshed || time.Since(began) != refresh {
			t.Errorf("after %s: %+v, want yes after %s", time.Since(began), in, refresh)
		}
	})
	story(t, func(b *bench) {
		b.commit(7)
		left := refresh + b.Config.Lease("search")
		time.Sleep(left - time.Microsecond)
		if in := b.ask("7", 0); in.Searchable != searchable.No {
			t.Errorf("before the lease is over: %+v", in)
		}
		time.Sleep(time.Microsecond)
		if in := b.ask("7", 0); in.Searchable != searchable.Yes || in.How != searchable.Refreshed {
			t.Errorf("after the lease: %+v", in)
		}
	})
}

// A commit during the wait starts the interval, and a second commit starts it again.
func TestTheIntervalCountsFromTheReadThatShowedTheCommit(t *testing.T) {
	t.Parallel()
	story(t, func(b *bench) {
		b.Config.Debounce.MinInterval = 0
		var at time.Time
		go func() {
			time.Sleep(3 * time.Second)
			b.commit(7)
			at = time.Now()
			time.Sleep(500 * time.Millisecond)
			b.commit(8)
		}()
		in := b.ask("7", searchable.MaxWait)
		took := time.Since(at)
		if in.Searchable != searchable.Yes || in.By != "8" || took < refresh+500*time.Millisecond {
			t.Errorf("%s after the commit: %+v", took, in)
		}
	})
}

// A sink whose interval is not in the settings is unknown, and a kind that shows writes at once is
// not.
func TestAnAnswerIsUnknownWithoutARefreshInterval(t *testing.T) {
	t.Parallel()
	story(t, func(b *bench) {
		b.commit(7)
		s := b.Config.Sinks["search"]
		s.Refresh, s.Kind = nil, "opensearch"
		b.Config.Sinks["search"] = s
		if in := b.ask("7", time.Second); in.Searchable != searchable.Unknown || !strings.Contains(in.Why, "sinks.search.refresh") {
			t.Errorf("got %+v", in)
		}
		s.Refresh = new(time.Duration)
		b.Config.Sinks["search"] = s
		if in := b.ask("7", 0); in.Searchable != searchable.Yes || in.How != searchable.AtOnce {
			t.Errorf("got %+v", in)
		}
	})
}

// counted counts the reads of a question, and refuses all writes.
type counted struct {
	shard.Store

	keys, reads int
}

func (c *counted) Read(ctx context.Context, docs []shard.DocID, how shard.Consistency) ([]shard.Row, error) {
	c.reads++
	c.keys += len(docs)
	if how != shard.Consistent {
		return nil, errors.New("an older row may be read")
	}
	return c.Store.Read(ctx, docs, how)
}

func (*counted) Write(context.Context, shard.Write) (shard.Row, error) {
	return shard.Row{}, errors.New("a question writes")
}

// A long poll reads two rows at a time, less and less often, and ends in time.
func TestALongPollBacksOff(t *testing.T) {
	t.Parallel()
	story(t, func(b *bench) {
		c := &counted{Store: b.Shards}
		b.Shards = c
		began := time.Now()
		b.ask("7", searchable.MaxWait)
		if took := time.Since(began); took != searchable.MaxWait || c.reads > 16 || c.keys != 2*c.reads {
			t.Errorf("%d reads of %d rows in %s", c.reads, c.keys, took)
		}
		began, c.reads = time.Now(), 0
		b.change(func(r *shard.Row) { r.Dead = b.rig.EventOf(usecasetest.Put("a", 7)).Key })
		if b.ask("7", searchable.MaxWait); time.Since(began) != 0 || c.reads != 1 {
			t.Errorf("a dead letter: %d reads in %s, want one", c.reads, time.Since(began))
		}
	})
}

// If the time of an invocation is over, the last answer is better than none.
func TestALongPollThatIsCutOffGivesItsLastAnswer(t *testing.T) {
	t.Parallel()
	story(t, func(b *bench) {
		b.admit(7)
		ctx, cancel := context.WithTimeout(b.Context(), 2*time.Second)
		defer cancel()
		a, err := b.Answer(ctx, searchable.Question{Key: "content#a", Version: "7", Wait: searchable.MaxWait})
		if err != nil || a.Sinks[0].Place != searchable.Waiting {
			t.Errorf("got %+v, %v", a, err)
		}
	})
}
