package model

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// This file closes the gap between model and code. The writes of internal/shard, whose conditions
// both stores take from there, are evaluated and applied beside the model's, on any row.

// The times of the comparison. A model row's ranks are the same in order: 0 absent, 1 before, 2
// now.
const (
	theDoc              = shard.DocID("page#1")
	before              = shard.Micros(1_000_000_000)
	now                 = before + 1000
	ahead               = now + 1000
	expires             = int64(4_000_000_000)
	mine    Token       = 1
	class   shard.Class = shard.ClassInt
)

// twin is one row as both sides see it.
type twin struct {
	model Row
	real  shard.Row
}

// orderKeys are those of the model's keys, which are the versions 9, 11 and 300 here.
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

// onAnyRows draws rows, most of which the model never reaches, each with a version.
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
	if random.IntN(2) == 0 { // or KEEP would hardly ever be granted
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

// floors are what a reset to just above each of the model's keys commits.
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

// newTwin makes the real row of a model row.
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

// All versions have the same bytes here: what tells contents apart is the version that they are of.
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

var tokens = []shard.Token{"", "mine", "other"} // by the model's token

// back reads a real row as the model would.
func (w *twin) back(r shard.Row) Row {
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

// move is one write on both sides.
type move struct {
	name  string
	want  bool
	after Row
	write shard.Write
}

// moves are all the writes for version k.
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
			add("KEEP", want, r.keep(k), shard.Write{Cond: []shard.Clause{{}}}) // never allowed: they differ
		}
	}
	add("RELEASE", r.releases(mine), r.release(rl, 2, false, false), shard.Release(lease, "throttled", false))
	add("RELEASE, refused", r.releases(mine), r.release(rl, 2, true, false), shard.Release(lease, "refused", true))
	add("REJECT", r.rejects(rl, mine), r.reject(rl, k, 2), shard.Reject(lease, "rejected", expires, w.real))
	// a lease that ends this very moment is live for PARK; the model has no such moment
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

// settle takes away what only one side tells apart: the end of a live lease, and the rank that goes
// with it.
func settle(r Row) Row {
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
		if got, want := settle(w.back(m.write.Apply(w.real))), settle(m.after); got != want {
			t.Fatalf("%s of %d (%s) on %+v:\ncode  %+v\nmodel %+v", m.name, k, m.write.Transition, w.model, got, want)
		}
	}
}

// TestConditionsOfTheCodeAreTheModels compares them on any row.
func TestConditionsOfTheCodeAreTheModels(t *testing.T) {
	t.Parallel()
	n := 30_000
	if *large {
		n = 1_000_000
	}
	onAnyRows(5, n, func(_ *rand.Rand, w twin, k Key) { w.compare(t, k) })
}

// TestEveryClauseOfTheCodeMatters takes each clause away in turn: the comparison must notice.
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
	// What the model has no row for: newer schemas, other classes, minInterval (see pace), and what
	// is there by the form itself.
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

// formClause says that a clause only tells two forms apart: with the newest image in hand it always
// holds. What it guards is compared by TestAStaleImageNeverChangesTheOutcome.
func formClause(write shard.Transition, c shard.Clause) bool {
	switch write {
	case shard.COMMIT, shard.COMMITNewerWaiting, shard.KEEP, shard.KEEPNewerWaiting, shard.REJECT,
		shard.REJECTNotPending, shard.PARK:
		return c[0].Attr == shard.AttrPending
	case shard.COLLECT:
		return true // "unchanged since read": the image is the row here
	case shard.RAISE:
		return len(c) == 1 // the same
	case shard.RESET:
		// The floor is below what was committed, and the image is the row: see the suite of the stores.
		return c[0].Op == shard.Greater || c[0].Attr == shard.AttrTakenBack
	}
	return false
}

// TestAStaleImageNeverChangesTheOutcome drives the forms of COMMIT, REJECT and PARK with an image
// whose pending is out of date: the write is refused, or does what the model does.
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
			want := settle(fresh[i].after)
			got := settle(w.back(m.write.Apply(w.real)))
			// A PARK by an image without pending may not know that there is a time to expire
			// already.
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

// TestDecisionsOfTheCodeAreTheModels compares the judgements and decisions with the model's: what
// is done, what leaves the flight, and that index claims exactly where CLAIM would be granted.
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
		if got, want := judged == shard.TooOld, aged && !w.model.judges(Rules{}) && !m.done(w.model, k); got != want {
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
		// An image from before may show anything about pending and dead; only a commit is believed.
		stale := shard.Decide(w.real, shard.Hold{Key: w.key(k), Admitted: before}, shard.View{Now: now}, timing)
		if stale.Act == shard.ActStored || stale.Act == shard.ActAdmit || stale.Act == shard.ActLeave {
			t.Fatalf("Decide %d on %+v: an eventually consistent image is believed: %+v", k, w.model, stale)
		}
	})
}

// TestMinIntervalOfTheCodeIsTheModels compares CLAIM's last clause with the small machine's.
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

// TestCollectOnlyTakesWhatTheModelCollects compares prune's view of settled rows, whatever their
// age.
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
