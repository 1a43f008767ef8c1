// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// sizedKey returns a key with a version below 16 million, and without zeros in its time or digest.
func sizedKey(t *testing.T) shard.OrderKey {
	t.Helper()
	v, err := shard.ParseVersion(shard.ClassInt, "16777215")
	if err != nil {
		t.Fatal(err)
	}
	return pack(t, shard.Parts{
		Version: v, Time: time.UnixMicro(1_777_888_812_345_678),
		Digest: shard.Digest{1, 2, 3, 4, 5, 6, 7, 8},
	})
}

// settle admits, claims and commits a version of a document with a 36-character id.
func settle(t *testing.T, r shard.Row, k shard.OrderKey, op shard.Operation) shard.Row {
	t.Helper()
	const now = 1_777_888_812_345_671
	step := func(w shard.Write) {
		if !w.Allowed(r) {
			t.Fatalf("%s is refused: %+v", w.Transition, r)
		}
		r = w.Apply(r)
	}
	step(shard.Admit(shard.Admission{
		Doc: r.Doc, Key: k, Class: shard.ClassInt, Flight: "01JV0000000000000000000000",
		Now: now,
	}))
	step(shard.Claim(shard.Bid{
		Doc: r.Doc, Key: k, Token: "0123456789abcdef0123456789abcdef", Now: now + 1,
		Until: now + 13_000_001,
	}))
	l := shard.Lease{Doc: r.Doc, Key: k, Token: "0123456789abcdef0123456789abcdef", At: now + 1}
	l.Content = shard.ContentOf("", k, nil)
	step(shard.Commit(l, op, now+11, 1_781_111_111, r))
	return r
}

var longest = shard.DocID(strings.Repeat("c", 32) + "#" + "f4c394f9-7a86-4ce0-aa36-7a63f0bc1bd5")

func TestASettledRowHasAtMost200Bytes(t *testing.T) {
	t.Parallel()
	k := sizedKey(t)
	if got, want := len(k), 21; got != want {
		t.Errorf("the key has %d bytes, want %d", got, want)
	}
	r := settle(t, shard.Row{Doc: longest}, k, shard.Delete)
	t.Logf("%d bytes: %+v", shardtest.ItemSize(r), r)
	if got := shardtest.ItemSize(r); got > 200 {
		t.Errorf("a committed row has %d bytes, want at most 200", got)
	}
	// after a put, the row also has the attribute content
	for _, op := range []shard.Operation{shard.Put, shard.Delete} {
		parked := settle(t, shard.Row{Doc: longest, Dead: k[:len(k)-1] + "\x01"}, k, op)
		if got := shardtest.ItemSize(parked); got > 200 {
			t.Errorf("%s: a committed row with the mark of a dead letter has %d bytes, want at most 200", op, got)
		}
	}
}

func TestTheFullestRowHasAtMostOneKilobyte(t *testing.T) {
	t.Parallel()
	k := sizedKey(t)
	now := shard.Micros(1_777_888_812_345_671)
	r := shard.Row{
		Doc: longest, Schema: 1, VersionClass: shard.ClassInt, Pending: k, Committed: k, CommittedOp: shard.Delete,
		Claimed: k, ClaimedWas: k,
		Dead: k, BurstStart: now, Flight: "01JV0000000000000000000000", Owner: shard.Token(strings.Repeat("f", 32)),
		LeaseUntil: now, LastWrite: now,
		TakenBack: shard.KeySetOf(k, k[:len(k)-1]+"1", k[:len(k)-1]+"2", k[:len(k)-1]+"3", k[:len(k)-1]+"4",
			k[:len(k)-1]+"5", k[:len(k)-1]+"6", k[:len(k)-1]+"7"),
		Attempts: 1 << 40, Refusals: 1 << 40, ExpiresAt: 1_781_111_111,
	}
	l := shard.Lease{Doc: r.Doc, Key: k, Token: r.Owner, At: now}
	r.LastError = shard.Release(l, strings.Repeat("ü", 500), true).Apply(r).LastError
	if got := shardtest.ItemSize(r); got > 1024 || len(r.LastError) != shard.MaxLastError {
		t.Errorf("%d bytes, with an error of %d bytes, want at most 1024: otherwise each write costs double", got,
			len(r.LastError))
	}
}

func TestSizesOfNumbers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]int{
		0: 1, 7: 2, 10: 2, 12: 2, 123: 3, -123: 4, 100_000: 2,
		1_777_888_812_345_671: 9,
	} {
		if got := shardtest.NumberSize(n); got != want {
			t.Errorf("%d has %d bytes, want %d", n, got, want)
		}
	}
}
