// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// key is the order key of an int version without anything else.
func key(t *testing.T, version int) shard.OrderKey {
	t.Helper()
	v, err := shard.ParseVersion(shard.ClassInt, fmt.Sprint(version))
	if err != nil {
		t.Fatal(err)
	}
	k, err := shard.NewOrderKey(shard.Parts{Version: v, Digest: shard.Digest{1}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestTheSentenceSaysWhyADocumentIsAsFreshAsItIs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	at := func(d time.Duration) shard.Micros { return shard.MicrosOf(now.Add(d)) }
	dead := func(version int, state deadletter.State, reason deadletter.Reason) Letter {
		return Letter{
			OrderKey: key(t, version).String(), Version: fmt.Sprint(version), State: state, Reason: reason,
			Redriven: now.Add(-time.Minute),
		}
	}
	noKey := Letter{Reason: deadletter.VersionInvalid, State: deadletter.Parked}
	pending := func(change func(*shard.Row)) shard.Row {
		r := shard.Row{
			Doc: "content#a", VersionClass: shard.ClassInt, Committed: key(t, 3), CommittedOp: shard.Put,
			Pending: key(t, 5), BurstStart: at(-4 * time.Second),
		}
		if change != nil {
			change(&r)
		}
		return r
	}
	settled := shard.Row{Doc: "content#a", Committed: key(t, 3), CommittedOp: shard.Put, LastWrite: at(-time.Hour)}
	deleted := settled
	deleted.CommittedOp = shard.Delete
	timing := shard.Timing{Quiet: 5 * time.Second, MaxWait: 30 * time.Second, CapGrace: 10 * time.Second}
	for _, tt := range []struct {
		name    string
		row     shard.Row
		health  shard.Row
		letters []Letter
		want    string
	}{
		{
			"nothing known",
			shard.Row{Doc: "content#a"},
			shard.Row{},
			nil,
			"No event of this document was ever judged, or its row was deleted after the retention of rows.",
		},
		{
			"one letter, no row",
			shard.Row{Doc: "content#a"},
			shard.Row{},
			[]Letter{noKey},
			"Nothing was ever committed: its only event is a dead letter (version_invalid).",
		},
		{
			"dead letters, no row",
			shard.Row{Doc: "content#a"},
			shard.Row{},
			[]Letter{dead(1, deadletter.Parked, deadletter.Contract), noKey},
			"Nothing was ever committed: its only events are 2 dead letters, the last for version_invalid.",
		},
		{
			"newer schema",
			shard.Row{Doc: "content#a", Schema: shard.SchemaVersion + 1},
			shard.Row{},
			nil,
			"Its row has a newer schema than this program: update lull.",
		},
		{
			"fresh", settled,
			shard.Row{},
			nil,
			"It is fresh: version 3 is in the sink since 2026-11-20T15:00:00.000Z, and nothing newer is known.",
		},
		{
			"pending is committed", pending(func(r *shard.Row) { r.Pending, r.LastWrite = r.Committed, at(-time.Hour) }),
			shard.Row{},
			nil,
			"It is fresh: version 3 is in the sink since 2026-11-20T15:00:00.000Z, and nothing newer is known.",
		},
		{
			"deleted", deleted,
			shard.Row{},
			nil,
			"It is fresh: version 3 deleted it at 2026-11-20T15:00:00.000Z, and nothing newer is known.",
		},
		{
			"an older dead letter", settled,
			shard.Row{},
			[]Letter{
				dead(2, deadletter.Parked, deadletter.RejectedBySink),
				noKey,
			},
			"It is fresh: version 3 is in the sink since 2026-11-20T15:00:00.000Z, and nothing newer is known.",
		},
		{
			"the newest is dead", settled,
			shard.Row{},
			[]Letter{
				dead(6, deadletter.Parked, deadletter.RejectedBySink),
				dead(4, deadletter.Parked, deadletter.Refusals),
			},
			"Version 3 is in the sink; the newer version 6 is a dead letter (rejected): fix the cause and `lull " +
				"dead redrive`.",
		},
		{
			"deleted, the newest is dead", deleted,
			shard.Row{},
			[]Letter{dead(4, deadletter.Parked, deadletter.RejectedBySink)},
			"It was deleted by version 3; the newer version 4 is a dead letter (rejected): fix the cause and `lull " +
				"dead redrive`.",
		},
		{
			"redriven, not received", settled,
			shard.Row{},
			[]Letter{dead(4, deadletter.Redriven, deadletter.Refusals)},
			"Version 3 is in the sink; the newer version 4, a dead letter (refusals), was redriven at " +
				"2026-11-20T15:59:00.000Z and is judged when it is received.",
		},
		{
			"the only version is dead",
			shard.Row{Doc: "content#a", Dead: key(t, 4)},
			shard.Row{},
			[]Letter{dead(4, deadletter.Parked, deadletter.RejectedBySink)},
			"Nothing is in the sink; version 4 is a dead letter (rejected): an older good version follows by itself " +
				"if one is held; otherwise fix the cause and `lull dead redrive`.",
		},
		{
			"its dead letter was dropped",
			shard.Row{Doc: "content#a", Dead: key(t, 4)},
			shard.Row{},
			nil,
			"Nothing is committed and nothing is pending: its version is a dead letter that was dropped.",
		},
		{
			"being written", pending(func(r *shard.Row) {
				r.Owner, r.LeaseUntil, r.Attempts = "token",
					at(13*time.Second), 1
			}),
			shard.Row{OpenUntil: at(0)},
			nil,
			"Version 5 is being written, or the answer of its write was lost: the lease runs until " +
				"2026-11-20T16:00:13.000Z.",
		},
		{
			"unhealthy sink", pending(nil),
			shard.Row{OpenUntil: at(time.Second)},
			nil,
			"Version 5 waits for the sink, which is unhealthy: nothing is claimed before 2026-11-20T16:00:01.000Z.",
		},
		{
			"blocked by a claim", pending(func(r *shard.Row) { r.Claimed = key(t, 7) }),
			shard.Row{},
			[]Letter{dead(7, deadletter.Parked, deadletter.DeadDeadline)},
			"Version 5 waits because version 7 was claimed, got no answer and may be in the sink: redrive its dead " +
				"letter first.",
		},
		{
			"blocked by a claim whose dead letter was dropped", pending(func(r *shard.Row) { r.Claimed = key(t, 7) }),
			shard.Row{},
			[]Letter{dead(6, deadletter.Parked, deadletter.DeadDeadline)},
			"Version 5 waits because version 7 was claimed, got no answer and may be in the sink: if its dead letter " +
				"was dropped, publish a newer version.",
		},
		{
			"no answer", pending(func(r *shard.Row) {
				r.Owner, r.LeaseUntil, r.Attempts = "token", at(-time.Second),
					2
			}),
			shard.Row{},
			nil,
			"Version 5 was claimed 2 times without an answer; it is tried again, in smaller groups each time.",
		},
		{
			"refused", pending(func(r *shard.Row) { r.Refusals, r.LastError = 3, "503 unavailable" }),
			shard.Row{},
			nil,
			"Version 5 was refused by the sink 3 times (503 unavailable); it is tried again after a back-off.",
		},
		{
			"after a write, with a long pace", pending(func(r *shard.Row) {
				r.LastWrite = shard.MicrosOf(now.Add(-4 * time.Minute))
			}),
			shard.Row{},
			nil,
			"Version 5 waits for its pace: the document was written 4m0s ago, and is written once in 10m0s at most. Due at " +
				now.UTC().Format(clockLayout) + ".",
		},
		{
			"below a ceiling that others use", pending(func(r *shard.Row) { r.BurstStart = at(-time.Minute) }),
			shard.Row{PaidUntil: at(time.Second)},
			nil,
			"Version 5 was due at 2026-11-20T15:59:59.000Z, and waits for its share: more is due than " +
				"maxDocumentsPerSecond lets go, 20 documents a second.",
		},
		{
			"requeued: no flight holds it, and the sink throttles", pending(nil),
			shard.Row{Rate: 7000, RateTop: 8000, RateAt: at(0)},
			nil,
			"Version 5 waits in the queue for its share of the sink, which takes fewer documents than are due: its " +
				"message is received again within four minutes, or 5m0s after a receive if its flight was lost.",
		},
		{
			"in its burst", pending(nil),
			shard.Row{},
			nil,
			"Version 5 waits for the lull: 4s into its burst; written 5s after the last change, at the latest 30s " +
				"after the first.",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			timing := timing
			if strings.HasPrefix(tt.name, "after a write") {
				timing.MinInterval = 10 * time.Minute
			}
			// A flight holds the pending version, and the sink has the committed one.
			e := evidence{
				row: tt.row, health: tt.health, letters: tt.letters, now: shard.MicrosOf(now), timing: timing,
				held:     []Held{{OrderKey: tt.row.Pending.String(), Due: now}},
				patience: 15 * time.Second, ceiling: 20_000, visibility: 5 * time.Minute,
				sink: sinkAnswer{
					found: tt.row.CommittedOp == shard.Put, key: tt.row.Committed,
					version: tt.row.Committed.VersionText(),
				},
			}
			if strings.HasPrefix(tt.name, "requeued") {
				e.held = nil
			}
			if strings.HasPrefix(tt.name, "below a ceiling") {
				e.held[0].Due = now.Add(-time.Second)
			}
			state, got := e.verdict()
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			// A sink that cannot be asked changes nothing of the rest.
			if e.sink = (sinkAnswer{why: "no route to host"}); tt.row.Exists() {
				if again, _ := e.verdict(); again != state {
					t.Errorf("without the sink it is %s, with it %s", again, state)
				}
			}
		})
	}
}

// A user who edits a document twice under one version must learn that one edit is lost.
func TestTheSentenceNamesAnEventOfTheSameVersion(t *testing.T) {
	t.Parallel()
	const lost = "But another event has the same version and other content, and lull refused it"
	for name, tt := range map[string]struct {
		decided journal.Step
		version string
		want    bool
	}{
		"the committed version": {journal.Conflict, "3", true},
		"an earlier version":    {journal.Conflict, "2", false},
		"a redelivery":          {journal.Duplicate, "3", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := evidence{
				row:       shard.Row{Doc: "content#a", Committed: key(t, 3), CommittedOp: shard.Put},
				sink:      sinkAnswer{found: true, key: key(t, 3), version: "3", bytes: shard.BytesSame},
				decisions: []Decision{{Decided: tt.decided, Version: tt.version}},
			}
			if state, got := e.verdict(); state != StateFresh || strings.Contains(got, lost) != tt.want {
				t.Errorf("got %s: %s, want the lost event named: %v", state, got, tt.want)
			}
		})
	}
}

// After KEEP the sink's copy is older than the row, but still fresh.
func TestTheSentenceComparesBytesBeforeVersions(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		version int // in the sink; the row is at 3
		bytes   shard.Bytes
		state   State
		want    string
	}{
		"kept": {1, shard.BytesSame, StateFresh, "It is fresh: version 3 was committed without a write, because it " +
			"has the same content as version 1, which is in the sink since 2026-11-20T15:00:00.000Z, and nothing newer is known."},
		"older":   {1, shard.BytesOther, StateSinkOlder, "Version 3 was written at 2026-11-20T15:00:00.000Z, and the sink holds the older version 1"},
		"changed": {3, shard.BytesOther, StateSinkOlder, "Version 3 was written at 2026-11-20T15:00:00.000Z, and somebody changed the document in the sink since"},
		"written": {3, shard.BytesSame, StateFresh, "It is fresh: version 3 is in the sink since 2026-11-20T15:00:00.000Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := evidence{
				row: shard.Row{
					Doc: "content#a", Committed: key(t, 3), CommittedOp: shard.Put, LastWrite: shard.MicrosOf(now.Add(-time.Hour)),
				},
				now: shard.MicrosOf(now), sink: sinkAnswer{
					found: true, key: key(t, tt.version), version: fmt.Sprint(tt.version), bytes: tt.bytes,
					at: now.Add(-2 * time.Hour),
				},
			}
			if state, got := e.verdict(); state != tt.state || !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s: %s\nwant %s: %s", state, got, tt.state, tt.want)
			}
		})
	}
}

// A dropped version may be in the sink, if its write got no answer.
func TestTheSentenceOfADroppedDeadLetterSaysWhatTheSinkHolds(t *testing.T) {
	t.Parallel()
	e := evidence{
		row:  shard.Row{Doc: "content#a", Dead: key(t, 4), Claimed: key(t, 4)},
		sink: sinkAnswer{found: true, key: key(t, 4), version: "4"},
	}
	want := "Nothing is committed and nothing is pending: its version is a dead letter that was dropped. The sink holds " +
		"version 4 all the same: publish a newer one."
	if state, got := e.verdict(); state != StateDropped || got != want {
		t.Errorf("got  %s: %s\nwant %s", state, got, want)
	}
}

func TestARowIsReadable(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)
	got := Readable(shard.Row{
		Doc: "content#a", VersionClass: shard.ClassInt, Committed: key(t, 3), CommittedOp: shard.Delete,
		LastWrite: shard.MicrosOf(at), Refusals: 2,
		ExpiresAt: at.Unix(), LastError: "400 mapping", Content: "\x00\xff",
	})
	want := map[string]any{
		"version_class": "i", "committed": key(t, 3).String(), "committed_op": "delete", "last_write": at,
		"refusals": int64(2), "expires_at": at, "last_error": "400 mapping",
		"content": "00ff",
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, v := range want {
		if g, ok := got[name].(time.Time); ok && g.Equal(at) {
			continue
		}
		if got[name] != v {
			t.Errorf("%s: got %v, want %v", name, got[name], v)
		}
	}
	if text, ok := got["committed"].(string); !ok || !strings.Contains(text, "i013") {
		t.Errorf("committed: %v, want it in print", got["committed"])
	}
}
