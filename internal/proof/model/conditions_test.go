// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// This file compares the model with the code. Every write of internal/shard has a twin in the
// model. The tests evaluate and apply both on any row. Both stores take their conditions from
// internal/shard.

// The times of the comparison. The ranks in a model row have the same order: 0 is absent, 1 is
// before, 2 is now.
const (
	theDoc              = shard.DocID("page#1")
	before              = shard.Micros(1_000_000_000)
	now                 = before + 1000
	ahead               = now + 1000
	expires             = int64(4_000_000_000)
	mine    Token       = 1
	class   shard.Class = shard.ClassInt
)

// twin is one row in both forms: the model's and the code's.
type twin struct {
	model Row
	real  shard.Row
}

// orderKeys are the order keys of the versions 9, 11 and 300, which stand for the model's keys 1, 2
// and 3.
var orderKeys = func() (keys [MaxKey + 1]shard.OrderKey) {
	for i, text := range []string{"9", "11", "300"} {
		v, err := shard.ParseVersion(class, text)
		if err != nil {
			panic(err)
		}
		if keys[i+1], err = shard.NewOrderKey(shard.Parts{Version: v, Digest: shard.Digest{1}}); err != nil {
			panic(err)
		}
	}
	return keys
}()

// onAnyRows calls look with n random rows, each with a random version. The model never reaches most
// of these rows.
func onAnyRows(seed uint64, n int, look func(random *rand.Rand, w twin, k Key)) {
	random := rand.New(rand.NewPCG(seed, 8))
	for range n {
		look(random, newTwin(anyRow(random)), Key(1+random.IntN(int(MaxKey))))
	}
}

func anyRow(random *rand.Rand) Row {
	if random.IntN(50) == 0 {
		return Row{}
	}
	key := func() Key { return Key(random.IntN(int(MaxKey) + 1)) }
	r := Row{
		Exists: true, Pending: key(), Committed: key(), Claimed: key(), ClaimedWas: key(), Dead: key(),
		Owner: Token(random.IntN(3)), Lease: random.IntN(3) == 0, LeaseUntil: Clock(random.IntN(3)),
		LastWrite: Clock(random.IntN(3)), Refusals: uint8(random.IntN(3)), Expires: random.IntN(2) == 0, Content: key(),
	}
	if random.IntN(4) == 0 {
		r.ClaimedWas = Lowest
	}
	if random.IntN(3) == 0 {
		r.Taken = Keys(key(), key()) &^ Keys(None)
	}
	if random.IntN(2) == 0 { // otherwise the row would hardly ever grant KEEP
		r.Content, r.Claimed, r.Lease = r.Committed, None, false
	}
	if r.Committed != None && random.IntN(4) == 0 {
		r.Floor, r.Content = true, None
	}
	r.Bytes = r.Content
	return r
}

func (w *twin) key(k Key) shard.OrderKey {
	if k == Lowest {
		return shard.Lowest
	}
	return orderKeys[k]
}

// floors are the keys that a reset to just above each of the model's keys commits.
var floors = func() (keys [MaxKey + 1]shard.OrderKey) {
	for i, text := range []string{"10", "12", "301"} {
		v, err := shard.ParseVersion(class, text)
		if err != nil {
			panic(err)
		}
		if keys[i+1], err = shard.Floor(0, v); err != nil {
			panic(err)
		}
	}
	return keys
}()

func (w *twin) set(s KeySet) shard.KeySet {
	var keys []shard.OrderKey
	for k := range s.All() {
		keys = append(keys, w.key(k))
	}
	return shard.KeySetOf(keys...)
}

// newTwin makes the code's row of a model row.
func newTwin(r Row) twin {
	w := twin{model: r, real: shard.Row{Doc: theDoc}}
	if !r.Exists {
		return w
	}
	times := [3]shard.Micros{0, before, now}
	w.real.VersionClass = class
	w.real.Pending, w.real.Committed = w.key(r.Pending), w.key(r.Committed)
	if r.Floor {
		w.real.Committed = floors[r.Committed]
	}
	w.real.Claimed, w.real.ClaimedWas, w.real.Dead = w.key(r.Claimed), w.key(r.ClaimedWas), w.key(r.Dead)
	w.real.TakenBack = w.set(r.Taken)
	w.real.Owner = tokens[r.Owner]
	w.real.LeaseUntil, w.real.LastWrite = times[r.LeaseUntil], times[r.LastWrite]
	if r.Lease {
		w.real.LeaseUntil = ahead
	}
	w.real.Refusals = int64(r.Refusals)
	if r.Pending != None {
		w.real.BurstStart = before
	}
	if r.Expires {
		w.real.ExpiresAt = expires - 1
	}
	if r.Committed != None {
		w.real.CommittedOp = shard.Put
	}
	if r.Content != None {
		w.real.Content = shard.ContentOf(generation, w.key(r.Content), document)
	}
	return w
}

// All versions have the same bytes in these tests. Two contents differ only by their version.
const generation = "here"

var document = []byte("{}")

func contentKey(c shard.Content) Key {
	for k := Key(1); k <= MaxKey; k++ {
		if shard.ContentOf(generation, orderKeys[k], document) == c {
			return k
		}
	}
	return None
}

var tokens = []shard.Token{"", "mine", "other"} // indexed by the model's token

// modelRow converts a row of the code to a row of the model.
func (w *twin) modelRow(r shard.Row) Row {
	if !r.Exists() {
		return Row{}
	}
	name := func(k shard.OrderKey) Key {
		if k == shard.Lowest {
			return Lowest
		}
		return Key(max(slices.Index(orderKeys[:], k), slices.Index(floors[:], k)))
	}
	rank := func(m shard.Micros) Clock {
		return map[shard.Micros]Clock{0: 0, before: 1, now: 2}[m]
	}
	var taken KeySet
	for _, k := range r.TakenBack.Keys() {
		taken |= Keys(name(k))
	}
	return Row{
		Exists: true, Taken: taken, Floor: r.Committed.IsFloor(),
		Pending: name(r.Pending), Committed: name(r.Committed), Claimed: name(r.Claimed),
		ClaimedWas: name(r.ClaimedWas), Dead: name(r.Dead), Lease: r.LeaseUntil == ahead,
		LeaseUntil: rank(r.LeaseUntil), LastWrite: rank(r.LastWrite), Refusals: uint8(r.Refusals),
		Expires: r.ExpiresAt != 0, Owner: Token(slices.Index(tokens, r.Owner)), Content: contentKey(r.Content),
		Bytes: contentKey(r.Content),
	}
}

// move is one write in both forms: the model's result, and the write of the code.
type move struct {
	name  string
	want  bool
	after Row
	write shard.Write
}

// moves returns all writes for version k.
func (w *twin) moves(k Key) []move {
	rl, r, key := Rules{}, w.model, w.key(k)
	lease := shard.Lease{Doc: theDoc, Key: key, Token: "mine", At: now}
	var out []move
	add := func(name string, want bool, after Row, write shard.Write) {
		out = append(out, move{name, want, after, write})
	}
	for _, aged := range []bool{false, true} {
		add("ADMIT", r.admits(rl, k, aged), r.admit(k),
			shard.Admit(shard.Admission{Doc: theDoc, Key: key, Class: class, Flight: "f", Now: now, Aged: aged}))
	}
	for _, again := range []bool{false, true} {
		for _, past := range []bool{false, true} {
			bid := shard.Bid{
				Doc: theDoc, Key: key, Token: "mine", Now: now, Until: ahead, Again: again,
				Cap: before - 1,
			}
			if past {
				bid.Cap = before
			}
			add("CLAIM", r.claims(rl, k, again, past, 2), r.claim(rl, k, again, mine, 2), shard.Claim(bid))
		}
	}
	add("COMMIT", r.commits(rl, k, mine), r.commit(rl, k, 2, None), shard.Commit(lease, shard.Put, now, expires, w.real))
	lease.Content = shard.ContentOf(generation, key, document)
	add("COMMIT, recognised", r.commits(rl, k, mine), r.commit(rl, k, 2, k),
		shard.Commit(lease, shard.Put, now, expires, w.real))
	for _, past := range []bool{false, true} {
		n := shard.Kept{
			Doc: theDoc, Key: key, Now: now, Cap: before - 1, Expires: expires, Generation: generation,
			Document: document,
		}
		if past {
			n.Cap = before
		}
		write, ok := shard.Keep(n, w.real)
		want := r.keeps(rl, k, r.Committed, past, func(Key, Key) bool { return true })
		switch {
		case ok && (r.LeaseUntil < 2 || r.Lease):
			add("KEEP", want, r.keep(k), write)
		case !ok && want:
			add("KEEP", want, r.keep(k), shard.Write{Cond: []shard.Clause{{}}}) // never allowed: the bytes differ
		}
	}
	add("RELEASE", r.releases(mine), r.release(rl, 2, false, false), shard.Release(lease, "throttled", false))
	add("RELEASE, refused", r.releases(mine), r.release(rl, 2, true, false), shard.Release(lease, "refused", true))
	add("REJECT", r.rejects(rl, mine), r.reject(rl, k, 2), shard.Reject(lease, "rejected", expires, w.real))
	// A lease that ends exactly now is live for PARK. The model has no such moment.
	if r.LeaseUntil < 2 || r.Lease {
		second := r.Pending != k
		add("PARK", r.parks(k, second), r.park(rl, k, second), shard.Park(theDoc, key, now, expires, w.real))
		if r.Dead == k {
			add("REDRIVE", r.redrives(rl, k), r.redrive(k), shard.Redrive(theDoc, key, now))
		}
		add("COLLECT", !r.Lease, Row{}, shard.Collect(w.real, now))
		copied := Sink{Content: k, Fence: 2}
		after := r.raise(r, copied)
		add("RAISE", r.raises(rl, r, copied), after,
			shard.Raise(w.real, shard.InSink{Key: key, Fence: shard.Fence(now)}, now, expires))
		read := w.real
		if read.Committed = key; r.Floor {
			read.Committed = floors[k]
		}
		for to := Key(1); to < k; to++ {
			add("RESET", r.resets(rl, k), r.reset(rl, to), shard.Reset(read, floors[to], now))
		}
	}
	return out
}

// withoutLeaseEnd removes what only one of the two forms stores: the end of a live lease, and its
// rank.
func withoutLeaseEnd(r Row) Row {
	if r.Lease {
		r.LeaseUntil = 0
	}
	return r
}

func (w *twin) compare(t *testing.T, k Key) {
	t.Helper()
	for _, m := range w.moves(k) {
		got := m.write.Allowed(w.real)
		if got != m.want {
			t.Fatalf("%s of %d (%s) on %+v: code %t, model %t", m.name, k, m.write.Transition, w.model, got, m.want)
		}
		if !got {
			continue
		}
		if got, want := withoutLeaseEnd(w.modelRow(m.write.Apply(w.real))), withoutLeaseEnd(m.after); got != want {
			t.Fatalf("%s of %d (%s) on %+v:\ncode  %+v\nmodel %+v", m.name, k, m.write.Transition, w.model, got, want)
		}
	}
}

// TestConditionsOfTheCodeAreTheModels compares the conditions of the code and of the model on any
// row.
func TestConditionsOfTheCodeAreTheModels(t *testing.T) {
	t.Parallel()
	n := 30_000
	if *large {
		n = 1_000_000
	}
	onAnyRows(5, n, func(_ *rand.Rand, w twin, k Key) { w.compare(t, k) })
}

// TestEveryClauseOfTheCodeMatters removes each clause in turn. The comparison must then fail.
func TestEveryClauseOfTheCodeMatters(t *testing.T) {
	t.Parallel()
	type clause struct {
		write shard.Transition
		n     int
	}
	noticed := map[clause]bool{}
	onAnyRows(1, 8_000, func(_ *rand.Rand, w twin, k Key) {
		for _, m := range w.moves(k) {
			for n := range m.write.Cond {
				mutant := m.write
				mutant.Cond = slices.Delete(slices.Clone(m.write.Cond), n, n+1)
				c := clause{m.write.Transition, n}
				noticed[c] = noticed[c] || mutant.Allowed(w.real) != m.want
			}
		}
	})
	// The model's rows lack newer schemas, other version classes and minInterval (see Pace).
	// Clauses about them cannot make a difference here.
	blind := map[shard.Attr]bool{shard.AttrSchema: true, shard.AttrVersionClass: true}
	w := newTwin(Row{Exists: true, Pending: 2})
	for _, m := range w.moves(2) {
		for n, c := range m.write.Cond {
			interval := c[len(c)-1].Attr == shard.AttrLastWrite && c[len(c)-1].Op == shard.AtMost
			if !noticed[clause{m.write.Transition, n}] && !blind[c[0].Attr] && !interval &&
				!formClause(m.write.Transition, c) {
				t.Errorf("%s without clause %d (%v) makes no difference to the model", m.write.Transition, n, c)
			}
		}
	}
}

// formClause reports whether a clause only separates two forms of a write. With the newest image of
// the row, such a clause always holds. TestAStaleImageNeverChangesTheOutcome covers what the clause
// protects.
func formClause(write shard.Transition, c shard.Clause) bool {
	switch write {
	case shard.COMMIT, shard.COMMITNewerWaiting, shard.KEEP, shard.KEEPNewerWaiting, shard.REJECT,
		shard.REJECTNotPending, shard.PARK:
		return c[0].Attr == shard.AttrPending
	case shard.COLLECT:
		return true // the clause says "unchanged since read", and here the image is the row itself
	case shard.RAISE:
		return len(c) == 1 // the clause says "unchanged since read", as for COLLECT
	case shard.RESET:
		// The floor is below the committed version, and the image is the row. The stores' suite
		// tests these clauses.
		return c[0].Op == shard.Greater || c[0].Attr == shard.AttrTakenBack || c[0].Attr == shard.AttrDead
	}
	return false
}

// TestAStaleImageNeverChangesTheOutcome chooses the form of COMMIT, REJECT and PARK by an image
// whose pending is out of date. The write must be refused, or do what the model does.
func TestAStaleImageNeverChangesTheOutcome(t *testing.T) {
	t.Parallel()
	refused := 0
	onAnyRows(3, 30_000, func(random *rand.Rand, w twin, k Key) {
		if !w.model.Exists {
			return
		}
		old := w
		old.real.Pending = w.key(Key(random.IntN(int(MaxKey) + 1)))
		fresh := w.moves(k)
		for i, m := range old.moves(k) {
			switch m.name {
			case "COMMIT", "REJECT", "PARK":
			default:
				continue
			}
			if !m.write.Allowed(w.real) {
				refused++
				continue
			}
			want := withoutLeaseEnd(fresh[i].after)
			got := withoutLeaseEnd(w.modelRow(m.write.Apply(w.real)))
			// A PARK that sees an image without pending may not know that the row already expires.
			if m.name == "PARK" {
				got.Expires, want.Expires = false, false
			}
			if got != want {
				t.Fatalf("%s with pending %q in hand on %+v:\ncode  %+v\nmodel %+v", m.write.Transition, old.real.Pending,
					w.model, got, want)
			}
		}
	})
	if refused == 0 {
		t.Error("no stale image was refused")
	}
}

// TestDecisionsOfTheCodeAreTheModels compares judgements and decisions with the model: which events
// are done, which leave the flight, and that index claims exactly if CLAIM would be granted.
func TestDecisionsOfTheCodeAreTheModels(t *testing.T) {
	t.Parallel()
	timing := shard.Timing{Quiet: time.Millisecond, MaxWait: 100 * time.Microsecond, CapGrace: 10 * time.Microsecond}
	m := Model{}
	onAnyRows(7, 50_000, func(random *rand.Rand, w twin, k Key) {
		aged := random.IntN(2) == 0
		judged := shard.Judge(w.real, w.key(k), class, aged)
		if got, want := judged.Done(), m.done(w.model, k); got != want {
			t.Fatalf("Judge %d on %+v: done %t, model %t", k, w.model, got, want)
		}
		tooOld := aged && !w.model.canJudgeAge(Rules{}) && !m.done(w.model, k)
		if got, want := judged == shard.TooOld, tooOld; got != want {
			t.Fatalf("Judge %d on %+v: too old %t, model %t", k, w.model, got, want)
		}
		if w.model.LeaseUntil < 2 || w.model.Lease {
			if got, want := shard.MayRedrive(w.real, w.key(k), now), w.model.redrives(Rules{}, k); got != want {
				t.Fatalf("MayRedrive %d on %+v: %t, model %t", k, w.model, got, want)
			}
		}
		step := shard.Decide(w.real, shard.Hold{Key: w.key(k), Admitted: before},
			shard.View{Now: now, Consistent: true}, timing)
		var want shard.Act
		again := w.model.Claimed == k
		switch {
		case w.model.Committed >= k:
			want = shard.ActDone
		case w.model.Dead == k || w.model.Taken.Has(k):
			want = shard.ActStored
		case w.model.Pending < k && max(w.model.Dead, w.model.Taken.Newest()) > k:
			want = shard.ActAdmit
		case w.model.Pending < k:
			want = shard.ActLeave
		case w.model.claims(Rules{}, k, again, true, 2): // the cap is past: the burst began long ago
			want = shard.ActClaim
		default:
			want = shard.ActWait
		}
		if step.Act != want || want == shard.ActClaim && step.Again != again {
			t.Fatalf("Decide %d on %+v: got %+v, want act %d, again %t", k, w.model, step, want, again)
		}
		// An older image may show anything about pending and dead. Decide may believe only a
		// commit.
		stale := shard.Decide(w.real, shard.Hold{Key: w.key(k), Admitted: before}, shard.View{Now: now}, timing)
		if stale.Act == shard.ActStored || stale.Act == shard.ActAdmit || stale.Act == shard.ActLeave {
			t.Fatalf("Decide %d on %+v: an eventually consistent image is believed: %+v", k, w.model, stale)
		}
	})
}

// TestMinIntervalOfTheCodeIsTheModels compares the last clause of CLAIM with the condition of the
// machine Pace.
func TestMinIntervalOfTheCodeIsTheModels(t *testing.T) {
	t.Parallel()
	for last := int8(longAgo); last <= 2; last++ {
		r := shard.Row{Doc: theDoc, VersionClass: class, Pending: orderKeys[1], BurstStart: before}
		s := Pace{}.Initial()
		s.Pending = 1
		if last > longAgo {
			r.LastWrite, s.LastWrite = now+shard.Micros(last), last
		}
		w := shard.Claim(shard.Bid{
			Doc: theDoc, Key: orderKeys[1], Token: "mine", Now: now, Until: ahead,
			MinInterval: minInterval * time.Microsecond,
		})
		granted := false
		for _, e := range (Pace{}).Next(s, nil) {
			granted = granted || e.To.Hosts[0].Phase == Sent
		}
		if got := w.Allowed(r); got != granted {
			t.Errorf("last write %d before: code %t, model %t", -last, got, granted)
		}
	}
}

// TestCollectOnlyTakesWhatTheModelCollects compares which settled rows prune may delete, whatever
// their age.
func TestCollectOnlyTakesWhatTheModelCollects(t *testing.T) {
	t.Parallel()
	onAnyRows(11, 20_000, func(_ *rand.Rand, w twin, _ Key) {
		r := w.model
		if !r.Exists || r.Lease && r.Owner == 0 || r.LeaseUntil == 2 && !r.Lease {
			return // no writer leaves such a row
		}
		w.real.ExpiresAt = 1
		collect, stuck := shard.Collectable(w.real, now, time.Hour, 0)
		if got, want := collect && !stuck, r.collectable(); got != want {
			t.Fatalf("%+v: code %t, model %t", r, got, want)
		}
	})
}
