// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

func takenKey(t *testing.T, version string, run shard.Run) shard.OrderKey {
	t.Helper()
	v, err := shard.ParseVersion(shard.ClassInt, version)
	if err != nil {
		t.Fatal(err)
	}
	return pack(t, shard.Parts{Epoch: 300, Version: v, Run: run, Digest: shard.Digest{1}})
}

func TestAnEventIsOneInEveryRun(t *testing.T) {
	t.Parallel()
	plain, again := takenKey(t, "900", shard.Run{}), takenKey(t, "900", shard.Run{7})
	if plain == again || again.Event() != plain || plain.Event() != plain {
		t.Errorf("key %s belongs to the event %s, want %s", again, again.Event(), plain)
	}
	for _, k := range []shard.OrderKey{"", shard.Lowest, "k1", "\xff", again[:len(again)-1], again + "x"} {
		if k.Event() != k {
			t.Errorf("%q, which cannot be read, became %q", k, k.Event())
		}
	}
}

func TestASetOfKeysIsOneStringWhateverTheOrder(t *testing.T) {
	t.Parallel()
	a, b := shard.KeySetOf("k2", "", "k1", "k2"), shard.KeySetOf("k1", "k2")
	if a != b || !slices.Equal(a.Keys(), []shard.OrderKey{"k1", "k2"}) || !a.Has("k2") || a.Has("k") {
		t.Errorf("%q and %q", a, b)
	}
	// no store returns such a set, but Keys must not panic
	for _, bad := range []shard.KeySet{"\x05k", "\x00", "\xff"} {
		_ = bad.Keys()
	}
}

// The committed version is v900, and the row is reset to v5. v6 and v7 become dead letters. v900
// must stay refused.
func TestWhatWasTakenBackIsRefusedAfterOtherDeadLetters(t *testing.T) {
	t.Parallel()
	absurd, again := takenKey(t, "900", shard.Run{}), takenKey(t, "900", shard.Run{7})
	row := settle(t, shard.Row{Doc: "content#a"}, absurd, shard.Put)
	const now = 1_777_888_999_000_000
	row = shard.Reset(row, floorOf(t, "5"), now).Apply(row)
	for _, v := range []string{"6", "7"} {
		row = shard.Park(row.Doc, takenKey(t, v, shard.Run{}), now, 1, row).Apply(row)
	}
	for _, k := range []shard.OrderKey{absurd, again} {
		if !row.Took(k) || shard.Judge(row, k, shard.ClassInt, false) != shard.TakenBack {
			t.Errorf("key %s is judged %s, want it taken back", k, shard.Judge(row, k, shard.ClassInt, false))
		}
		admit := shard.Admit(shard.Admission{Doc: row.Doc, Key: k, Class: shard.ClassInt, Flight: "f", Now: now})
		if admit.Allowed(row) {
			t.Errorf("key %s is admitted by %+v", k, row)
		}
		if shard.Marked(row, k, now) != shard.MarkWritten {
			t.Errorf("the dead letter of key %s is not superseded", k)
		}
		eventual := shard.Decide(row, shard.Hold{Key: k}, shard.View{Now: now}, shard.Timing{})
		sure := shard.Decide(row, shard.Hold{Key: k}, shard.View{Now: now, Consistent: true}, shard.Timing{})
		if eventual.Act != shard.ActReadAgain || sure.Act != shard.ActStored {
			t.Errorf("%s: decided %+v, and %+v by a consistent read", k, eventual, sure)
		}
		late := shard.InSink{Key: k, Fence: now + 1}
		if d := shard.Compare(row, late, now, 0); d != shard.Waiting {
			t.Errorf("a copy of %s in the sink is %s, want it to wait for a newer version", k, d)
		}
	}
	if k := takenKey(t, "6", shard.Run{7}); shard.Judge(row, k, shard.ClassInt, false) != shard.Held {
		t.Errorf("version 6 is %s", shard.Judge(row, k, shard.ClassInt, false))
	}
	// No version is pending, so the flight admits the older version that it also holds.
	older := shard.Decide(row, shard.Hold{Key: takenKey(t, "8", shard.Run{})},
		shard.View{Now: now, Consistent: true}, shard.Timing{})
	if older.Act != shard.ActAdmit {
		t.Errorf("an older version is %+v, want it admitted", older)
	}
	committed := row
	committed.Committed, committed.LastWrite = takenKey(t, "8", shard.Run{}), 1
	if d := shard.Compare(committed, shard.InSink{Key: absurd, Fence: 2}, now, 0); d != shard.Older {
		t.Errorf("the absurd copy under a newer commit is %s, want older", d)
	}
	back := shard.GiveBack(committed, floorOf(t, "900"))
	if back.Allowed(committed) && !back.Apply(committed).Took(absurd) {
		return
	}
	t.Errorf("the version is not given back by %+v", back)
}

func TestARowWithAllThatItMayRememberIsSmall(t *testing.T) {
	t.Parallel()
	k := sizedKey(t)
	var taken []shard.OrderKey
	for i := range shard.MaxTakenBack {
		taken = append(taken, k[:len(k)-1]+shard.OrderKey(rune('a'+i)))
	}
	reset := shard.Row{Doc: longest, Dead: k[:len(k)-1] + "\x01", TakenBack: shard.KeySetOf(taken...)}
	row := settle(t, reset, k, shard.Put)
	if got := shardtest.ItemSize(row); got > 400 {
		t.Errorf("a committed row has %d bytes, want at most 400", got)
	}
}

// v900 is reset to v5, v2000 to v950, and v960 to v5. v900 must stay taken back.
func TestALowerResetBringsNothingBack(t *testing.T) {
	t.Parallel()
	row := shard.Row{Doc: "content#a"}
	for _, step := range []struct{ absurd, to string }{{"900", "5"}, {"2000", "950"}, {"960", "5"}} {
		row.Committed = takenKey(t, step.absurd, shard.Run{})
		row = shard.Reset(row, floorOf(t, step.to), 1_777_888_999_000_000).Apply(row)
	}
	for _, v := range []string{"900", "960", "2000"} {
		if k := takenKey(t, v, shard.Run{7}); shard.Judge(row, k, shard.ClassInt, false) != shard.TakenBack {
			t.Errorf("version %s is %s", v, shard.Judge(row, k, shard.ClassInt, false))
		}
	}
}

// A full row forgets only the lowest versions below the floor, which are stale.
func TestAFullRowForgetsOnlyWhatIsBelowTheFloor(t *testing.T) {
	t.Parallel()
	var all []shard.OrderKey
	for v := range shard.MaxTakenBack + 1 {
		all = append(all, takenKey(t, strconv.Itoa(100+10*v), shard.Run{}))
	}
	for _, tt := range []struct {
		floor string
		taken int // how many keys of all were taken back before the reset
		want  []shard.OrderKey
	}{
		// there are too many keys, so the caller refuses the set
		{"5", shard.MaxTakenBack, all},
		{"115", shard.MaxTakenBack, all[1:]}, // 110 is below the floor, too
		// the key of the floor's version is removed, so there is room
		{"120", shard.MaxTakenBack, append(all[:2:2], all[3:]...)},
		{"175", shard.MaxTakenBack - 1, append(all[:7:7], all[8])}, // there is room for one more key
	} {
		row := shard.Row{Committed: all[shard.MaxTakenBack], TakenBack: shard.KeySetOf(all[:tt.taken]...)}
		if got := row.TakeBack(floorOf(t, tt.floor)); got != shard.KeySetOf(tt.want...) {
			t.Errorf("to %s: %d keys, want %d", tt.floor, len(got.Keys()), len(tt.want))
		}
	}
}

func floorOf(t *testing.T, version string) shard.OrderKey {
	t.Helper()
	p, _ := takenKey(t, version, shard.Run{}).Parts()
	floor, err := shard.Floor(p.Epoch, p.Version)
	if err != nil {
		t.Fatal(err)
	}
	return floor
}
