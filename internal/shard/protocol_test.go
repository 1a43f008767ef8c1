// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// world has the real row, its twin, and the facts that the protocol promises about both.
type world struct {
	store  *memory.Shards
	doc    shard.DocID
	twin   twin
	keys   []written
	packed map[string]shard.OrderKey
	now    int64
	tokens int
	leases []grant
	images []shard.Row // earlier states of the row, which a slow caller may still have
	twins  []twin      // the twin's earlier states, in the same order
	floors []plainKey  // the floor of each version
	fence  int64       // the fence of the last claim that was granted
}

type grant struct {
	shard.Lease
	key written
}

func newWorld(t *rapid.T) *world {
	w := &world{store: memory.NewShards(), doc: "pages#a", packed: map[string]shard.OrderKey{}, now: noon.UnixMicro()}
	for version := range int64(4) {
		v, err := shard.ParseVersion(shard.ClassInt, fmt.Sprint(version))
		if err != nil {
			t.Fatal(err)
		}
		for variant := range byte(4) { // each version has three payloads, and one of them also in a resync run
			p := shard.Parts{Version: v, Digest: shard.Digest{1 + variant%3}, Run: shard.Run{variant / 3}}
			k := written{parts: p, plain: plainKey{
				number: big.NewInt(version), digest: p.Digest, run: p.Run,
				class: shard.ClassInt,
			}}
			w.keys = append(w.keys, k)
			w.packed[k.plain.name()] = pack(t, p)
		}
		floor := plainKey{number: big.NewInt(version), class: shard.ClassInt}
		if w.packed[floor.name()], err = shard.Floor(0, v); err != nil {
			t.Fatal(err)
		}
		w.floors = append(w.floors, floor)
	}
	return w
}

func (w *world) row(t *rapid.T) shard.Row {
	rows, err := w.store.Read(t.Context(), []shard.DocID{w.doc}, shard.Consistent)
	if err != nil {
		t.Fatal(err)
	}
	return rows[0]
}

func (w *world) key(t *rapid.T) written { return rapid.SampledFrom(w.keys).Draw(t, "key") }

// write executes a write on the store and on the twin, and compares the two.
func (w *world) write(t *rapid.T, wr shard.Write, allowed bool) bool {
	before := w.row(t)
	old, err := w.store.Write(t.Context(), wr)
	refused, isRefused := shard.AsRefused(err)
	if isRefused == allowed || err != nil && !isRefused {
		t.Fatalf("%s: %v, the twin allows it: %v\nrow %+v", wr.Transition, err, allowed, before)
	}
	if isRefused {
		old = refused.Row
	}
	if old != before {
		t.Fatalf("%s: image %+v, want %+v", wr.Transition, old, before)
	}
	after := w.row(t)
	if want := w.twin.row(w.doc, w.packed); after != want {
		t.Fatalf("%s: row  %+v\n want %+v", wr.Transition, after, want)
	}
	// committed never decreases while the row exists. claimed does not decrease either, unless its
	// version became a dead letter.
	reset := wr.Transition == shard.RESET
	if after.Committed < before.Committed && !reset {
		t.Fatalf("%s: committed went back from %s to %s", wr.Transition, before.Committed, after.Committed)
	}
	if top := max(after.Claimed, after.Committed); top < max(before.Claimed, before.Committed) &&
		after.Dead != before.Claimed && !reset {
		t.Fatalf("%s: claimed went back from %s to %s", wr.Transition, before.Claimed, top)
	}
	for _, k := range []shard.OrderKey{after.Pending, after.Claimed, after.Committed} {
		if after.Took(k) {
			t.Fatalf("%s: version %s exists again, although an operator took it back: %+v", wr.Transition, k, after)
		}
	}
	w.images, w.twins = append(w.images, after), append(w.twins, w.twin)
	return !isRefused
}

// image returns the present row or an older one, as a slow caller may have it.
func (w *world) image(t *rapid.T) shard.Row {
	if len(w.images) > 0 && rapid.IntRange(0, 3).Draw(t, "old image") == 0 {
		return rapid.SampledFrom(w.images).Draw(t, "image")
	}
	return w.row(t)
}

// read returns an image of the row, with the twin's state at that time.
func (w *world) read(t *rapid.T) (shard.Row, twin) {
	if n := len(w.images); n > 0 && rapid.IntRange(0, 3).Draw(t, "old image") == 0 {
		i := rapid.IntRange(0, n-1).Draw(t, "image")
		return w.images[i], w.twins[i]
	}
	return w.row(t), w.twin
}

func (w *world) lease(t *rapid.T) grant {
	if len(w.leases) == 0 {
		t.Skip("there was no lease yet")
	}
	if rapid.Bool().Draw(t, "latest") {
		return w.leases[len(w.leases)-1]
	}
	return rapid.SampledFrom(w.leases).Draw(t, "lease")
}

func (w *world) expires() int64 { return w.now/1_000_000 + 1000 }

func (w *world) actions() map[string]func(*rapid.T) {
	const second = 1_000_000
	return map[string]func(*rapid.T){
		"time": func(t *rapid.T) {
			w.now += rapid.SampledFrom([]int64{
				0, 1, second / 2, second, 5 * second, 13 * second, 60 * second, -1,
				-second,
			}).Draw(t, "step")
		},
		"admit": func(t *rapid.T) {
			k, aged := w.key(t), rapid.IntRange(0, 4).Draw(t, "aged") == 0
			class := rapid.SampledFrom([]shard.Class{
				shard.ClassInt, shard.ClassInt, shard.ClassInt,
				shard.ClassSeq,
			}).Draw(t, "class")
			row := w.row(t)
			wr := shard.Admit(shard.Admission{
				Doc: w.doc, Key: w.packed[k.plain.name()], Class: class, Flight: "f",
				Now: shard.Micros(w.now), Aged: aged,
			})
			admitted := w.write(t, wr, w.twin.admit(k.plain, class, "f", w.now, aged))
			judged := shard.Judge(row, w.packed[k.plain.name()], class, aged)
			if admitted && judged != shard.Held {
				t.Fatalf("admitted and judged %s", judged)
			}
			if !admitted && judged == shard.Held && row.Pending < w.packed[k.plain.name()] {
				t.Fatalf("refused and judged held, with nothing newer pending: %+v", row)
			}
		},
		"claim": func(t *rapid.T) {
			k, again := w.key(t), rapid.Bool().Draw(t, "again")
			limit := w.now - rapid.SampledFrom([]int64{0, 5 * second, 30 * second}).Draw(t, "cap")
			interval := rapid.SampledFrom([]int64{0, second}).Draw(t, "interval")
			until := w.now + rapid.SampledFrom([]int64{0, 13 * second}).Draw(t, "lease")
			w.tokens++
			token := fmt.Sprint("token ", w.tokens)
			b := shard.Bid{
				Doc: w.doc, Key: w.packed[k.plain.name()], Token: shard.Token(token), Now: shard.Micros(w.now),
				Until: shard.Micros(until),
				Cap:   shard.Micros(limit), MinInterval: time.Duration(interval) * time.Microsecond, Again: again,
			}
			w.claim(t, b, k, w.twin.claim(k.plain, token, w.now, until, limit, interval, again))
		},
		"decide and claim": w.decide,
		"through":          w.through,
		"commit": func(t *rapid.T) {
			l, image := w.lease(t), w.image(t)
			op := rapid.SampledFrom([]shard.Operation{shard.Put, shard.Delete}).Draw(t, "op")
			waiting := image.Pending > l.Key
			w.write(t, shard.Commit(l.Lease, op, shard.Micros(w.now), w.expires(), image),
				w.twin.commit(l.key.plain, string(l.Token), int64(l.At), op, w.now, w.expires(), waiting))
		},
		"release": func(t *rapid.T) {
			l, refused := w.lease(t), rapid.Bool().Draw(t, "refused")
			w.write(t, shard.Release(l.Lease, "throttled", refused),
				w.twin.release(string(l.Token), int64(l.At), "throttled", refused))
		},
		"reject": func(t *rapid.T) {
			l, row := w.lease(t), w.row(t)
			waits := rapid.Bool().Draw(t, "form")
			image := row // the image after the claim, for either form of the write
			if image.Pending = ""; waits {
				image.Pending = l.Key
			}
			w.write(t, shard.Reject(l.Lease, "mapping", w.expires(), image),
				w.twin.reject(l.key.plain, string(l.Token), int64(l.At), "mapping", w.expires(), waits))
		},
		"park": func(t *rapid.T) {
			k, image := w.key(t), w.image(t)
			waits := image.Pending == w.packed[k.plain.name()]
			w.write(t, shard.Park(w.doc, w.packed[k.plain.name()], shard.Micros(w.now), w.expires(), image),
				w.twin.park(k.plain, w.now, w.expires(), waits, image.Pending == ""))
		},
		"redrive": func(t *rapid.T) {
			k := w.key(t)
			row := w.row(t)
			allowed := w.write(t, shard.Redrive(w.doc, w.packed[k.plain.name()], shard.Micros(w.now)),
				w.twin.redrive(k.plain, w.now))
			if allowed && !shard.MayRedrive(row, w.packed[k.plain.name()], shard.Micros(w.now)) {
				t.Fatalf("a redrive was allowed while a flight worked on the version: %+v", row)
			}
		},
		"reset": w.reset,
		"through, then reset": func(t *rapid.T) {
			w.through(t)
			w.reset(t)
		},
		"give back": func(t *rapid.T) {
			row, read := w.read(t)
			floor := rapid.SampledFrom(w.floors).Draw(t, "floor")
			if len(read.taken) == 0 {
				t.Skip("no version was taken back")
			}
			w.write(t, shard.GiveBack(row, w.packed[floor.name()]), w.twin.giveBack(&read, floor))
		},
		"collect": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "seldom") != 0 {
				return
			}
			row := w.row(t)
			allowed := !w.twin.foreign() && past(w.twin.lease, w.now)
			wr := shard.Collect(row, shard.Micros(w.now))
			if _, err := w.store.Write(t.Context(), wr); (err == nil) != allowed {
				t.Fatalf("COLLECT: %v, want allowed: %v", err, allowed)
			}
			if allowed {
				w.twin, w.fence, w.images, w.twins, w.leases = twin{}, 0, nil, nil, nil
			}
		},
		"a newer build": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "seldom") != 0 {
				return
			}
			r := w.row(t)
			r.Schema = rapid.Int64Range(0, 2).Draw(t, "schema")
			w.twin.schema = r.Schema
			if _, err := w.store.Write(t.Context(), shardtest.Put(r)); err != nil {
				t.Fatal(err)
			}
		},
		"": func(t *rapid.T) {
			if got, want := w.row(t), w.twin.row(w.doc, w.packed); got != want {
				t.Fatalf("row  %+v\n want %+v", got, want)
			}
		},
	}
}

// claim executes a claim and checks that the fence grew.
func (w *world) claim(t *rapid.T, b shard.Bid, k written, allowed bool) {
	if !w.write(t, shard.Claim(b), allowed) {
		return
	}
	if int64(b.Now) <= w.fence {
		t.Fatalf("the fence went from %d to %d", w.fence, b.Now)
	}
	w.fence = int64(b.Now)
	w.leases = append(w.leases, grant{shard.Lease{Doc: w.doc, Key: b.Key, Token: b.Token, At: b.Now}, k})
}

// through does all writes that bring a version to the sink, if the row allows them. Random single
// steps seldom reach the write.
func (w *world) through(t *rapid.T) {
	k, token := w.key(t), fmt.Sprint("token ", w.tokens+1)
	w.tokens++
	w.now += 60_000_000
	a := shard.Admission{
		Doc: w.doc, Key: w.packed[k.plain.name()], Class: shard.ClassInt, Flight: "f", Now: shard.Micros(w.now),
	}
	w.write(t, shard.Admit(a), w.twin.admit(k.plain, a.Class, a.Flight, w.now, false))
	b := shard.Bid{Doc: w.doc, Key: a.Key, Token: shard.Token(token), Now: a.Now, Until: a.Now + 1, Cap: a.Now}
	granted := len(w.leases)
	w.claim(t, b, k, w.twin.claim(k.plain, token, w.now, w.now+1, w.now, 0, false))
	if len(w.leases) == granted {
		return
	}
	l, image := w.leases[granted], w.row(t)
	w.write(t, shard.Commit(l.Lease, shard.Put, a.Now, w.expires(), image),
		w.twin.commit(k.plain, token, w.now, shard.Put, w.now, w.expires(), image.Pending > l.Key))
}

func (w *world) reset(t *rapid.T) {
	row, read := w.read(t)
	floor := rapid.SampledFrom(w.floors).Draw(t, "floor")
	if read.committed == nil || len(read.takeBack(floor)) > shard.MaxTakenBack {
		t.Skip("no operator resets such a row")
	}
	w.write(t, shard.Reset(row, w.packed[floor.name()], shard.Micros(w.now)), w.twin.reset(&read, floor, w.now))
}

// decide does what index does with one version, and checks that the decision is right.
func (w *world) decide(t *rapid.T) {
	k := w.key(t)
	timing := shard.Timing{
		Quiet: 5 * time.Second, MaxWait: 30 * time.Second, CapGrace: 10 * time.Second,
		MinInterval: time.Second, Waits: 3,
	}
	h := shard.Hold{
		Key:      w.packed[k.plain.name()],
		Admitted: shard.Micros(w.now - rapid.Int64Range(0, 60_000_000).Draw(t, "admitted")),
	}
	v := shard.View{
		Now: shard.Micros(w.now), Consistent: true, Turn: rapid.IntRange(0, 4).Draw(t, "turn"),
		Backoff: shard.Micros(w.now + 1),
	}
	row := w.row(t)
	step := shard.Decide(row, h, v, timing)
	late := v
	late.Consistent = false
	if eventual := shard.Decide(row, h, late, timing); eventual != step && eventual.Act != shard.ActReadAgain {
		t.Fatalf("an eventual read decides %+v, but a consistent read decides %+v", eventual, step)
	}
	switch step.Act {
	case shard.ActClaim:
		w.tokens++
		token := fmt.Sprint("token ", w.tokens)
		b := shard.Bid{
			Doc: w.doc, Key: h.Key, Token: shard.Token(token), Now: v.Now, Until: v.Now.Add(13 * time.Second),
			Cap:         step.Cap,
			MinInterval: timing.MinInterval, Again: step.Again,
		}
		if !shard.Claim(b).Allowed(row) {
			t.Fatalf("decided to claim %s, but the row would refuse the claim: %+v", h.Key, row)
		}
		w.claim(t, b, k, w.twin.claim(k.plain, token, w.now, int64(b.Until), int64(step.Cap), 1_000_000, step.Again))
	case shard.ActWait:
		if step.Until <= v.Now || step.Why == "" {
			t.Fatalf("decided to wait until %d, now is %d: %q", step.Until, v.Now, step.Why)
		}
	case shard.ActDone:
		if row.Committed < h.Key {
			t.Fatalf("%s counts as done with %s committed", h.Key, row.Committed)
		}
	case shard.ActStored:
		if row.Dead != h.Key && !w.twin.took(k.plain) {
			t.Fatalf("%s counts as stored in %+v", h.Key, row)
		}
	case shard.ActAdmit:
		takenAfter := slices.ContainsFunc(w.twin.taken, func(taken plainKey) bool { return taken.compare(k.plain) > 0 })
		if row.Pending >= h.Key || row.Dead <= h.Key && !takenAfter {
			t.Fatalf("%s is to be admitted in %+v", h.Key, row)
		}
	case shard.ActLeave:
		if !row.Foreign() && row.Pending >= h.Key {
			t.Fatalf("%s is left with %s pending", h.Key, row.Pending)
		}
	case shard.ActReadAgain:
		t.Fatalf("decided to read again after a consistent read: %+v", row)
	}
}

func TestTheWritesDoWhatTheDesignSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { t.Repeat(newWorld(t).actions()) })
}

// TestTheNewestVersionIsWrittenInTheEnd runs random actions on a row. After that, only one flight
// works on the row, with the newest version, and must write it.
func TestTheNewestVersionIsWrittenInTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		actions := w.actions()
		delete(actions, "a newer build")
		t.Repeat(actions)
		if w.row(t).VersionClass == shard.ClassSeq {
			t.Skip("the row's versions are of another class")
		}
		newest := w.keys[len(w.keys)-1]
		key := w.packed[newest.plain.name()]
		if w.row(t).Dead == key {
			t.Skip("the dead letter of the version is stored")
		}
		if w.twin.took(newest.plain) {
			t.Skip("an operator took the version back")
		}
		timing := shard.Timing{
			Quiet: 5 * time.Second, MaxWait: 30 * time.Second, CapGrace: 10 * time.Second,
			MinInterval: time.Second, Waits: 3,
		}
		admitted := shard.Micros(w.now)
		began := w.now
		for turn := range 20 {
			row := w.row(t)
			if row.Pending != key {
				w.twin.admit(newest.plain, shard.ClassInt, "f", w.now, false)
				if _, err := w.store.Write(t.Context(), shard.Admit(shard.Admission{
					Doc: w.doc, Key: key,
					Class: shard.ClassInt, Flight: "f", Now: shard.Micros(w.now),
				})); err != nil {
					if row.Committed == key {
						return
					}
					t.Fatalf("the newest version is not admitted: %+v", row)
				}
				row = w.row(t)
			}
			v := shard.View{
				Now: shard.Micros(w.now), Consistent: true, Turn: turn,
				Backoff: shard.Micros(w.now + 1_000_000),
			}
			step := shard.Decide(row, shard.Hold{Key: key, Admitted: admitted}, v, timing)
			switch step.Act {
			case shard.ActDone:
				return
			case shard.ActWait:
				w.now = int64(step.Until)
			case shard.ActClaim:
				b := shard.Bid{
					Doc: w.doc, Key: key, Token: "last", Now: v.Now, Until: v.Now + 1, Cap: step.Cap,
					MinInterval: time.Second, Again: step.Again,
				}
				if _, err := w.store.Write(t.Context(), shard.Claim(b)); err != nil {
					t.Fatalf("claim: %v", err)
				}
				l := shard.Lease{Doc: w.doc, Key: key, Token: "last", At: b.Now}
				if _, err := w.store.Write(t.Context(), shard.Commit(l, shard.Put, b.Now, 1, w.row(t))); err != nil {
					t.Fatalf("commit: %v", err)
				}
			default:
				t.Fatalf("decided %+v: %+v", step, row)
			}
		}
		t.Fatalf("the version was not written after %s: %+v", time.Duration(w.now-began)*time.Microsecond, w.row(t))
	})
}
