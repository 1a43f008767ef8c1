package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// world is a table and a bucket in memory, and a scheduler of the processes that park and drop dead
// letters. One process makes a call at a time; the seed chooses which. An answer may be lost, and
// the process killed.
type world struct {
	dice    *rand.Rand
	items   map[shard.DocID]item
	objects map[string]string
	ready   chan *process
	faults  bool
	lose    uint // the calls whose answers are lost, the first one lowest
	killed  int
}

type process struct {
	w     *world
	turn  chan error
	ended bool
}

var (
	errLost   = errors.New("the answer is lost")
	errKilled = errors.New("killed")
)

// call is one call of a process: it waits for its turn, and is told whether its answer arrives.
func (p *process) call() error {
	p.w.ready <- p
	return <-p.turn
}

func (p *process) get(_ context.Context, doc shard.DocID) (item, error) {
	fault := p.call()
	return maps.Clone(p.w.items[doc]), fault
}

func (p *process) waiting(context.Context, kind, span, int, int, func(item) bool) ([]item, string, error) {
	return nil, "", errors.New("not asked for")
}

func (p *process) countWaiting(context.Context, kind, string, map[string]string, item, int) (int, bool, error) {
	return 0, false, errors.New("not asked for")
}

func (p *process) change(_ context.Context, _ string, w shard.Write) (item, error) {
	fault := p.call()
	old := p.w.items[w.Doc]
	for _, clause := range w.Cond {
		if !slices.ContainsFunc(clause, func(t shard.Term) bool { return holds(old, t) }) {
			return nil, errors.Join(fault, &types.ConditionalCheckFailedException{})
		}
	}
	if w.Drop {
		delete(p.w.items, w.Doc)
		return old, fault
	}
	it := maps.Clone(old)
	if it == nil {
		it = key(w.Doc)
	}
	for _, a := range w.Update {
		name := string(a.Attr)
		switch a.Verb {
		case shard.Set:
			it[name] = encode(a.Val)
		case shard.SetIfAbsent:
			if it[name] == nil {
				it[name] = encode(a.Val)
			}
		case shard.Remove:
			delete(it, name)
		case shard.Add:
			a.Val.Num += fields(it).number(name)
			it[name] = encode(a.Val)
		}
	}
	p.w.items[w.Doc] = it
	return old, fault
}

func holds(it item, t shard.Term) bool {
	there := it[string(t.Attr)] != nil
	switch t.Op {
	case shard.Exists:
		return there
	case shard.Absent:
		return !there
	case shard.Less:
		return there && fields(it).number(string(t.Attr)) < t.Val.Num
	}
	return there && fmt.Sprint(must(value(it[string(t.Attr)]))) == fmt.Sprint(t.Val)
}

func must(v shard.Value, err error) shard.Value {
	if err != nil {
		panic(err)
	}
	return v
}

func (p *process) Put(_ context.Context, id, body string, _ map[string]queue.Attribute) error {
	fault := p.call()
	p.w.objects[id] = body
	return fault
}

func (p *process) Get(_ context.Context, id string) (string, map[string]queue.Attribute, bool, error) {
	body, ok := p.w.objects[id]
	return body, nil, ok, nil
}

func (p *process) Delete(_ context.Context, id string) error {
	fault := p.call()
	delete(p.w.objects, id)
	return fault
}

// run runs the jobs concurrently until all have ended. A job whose call loses its answer repeats
// the call; a process that is killed ends.
func (w *world) run(jobs []func(*Letters) error) {
	var running []*process
	for _, job := range jobs {
		p := &process{w: w, turn: make(chan error)}
		running = append(running, p)
		go func() {
			for range 20 {
				if err := job(newLetters(p, p)); err == nil || errors.Is(err, errKilled) {
					break
				}
			}
			p.ended = true
			w.ready <- p
		}()
	}
	// Everybody comes to a first call or to an end, then one after the other.
	waiting := map[*process]bool{}
	for range running {
		waiting[<-w.ready] = true
	}
	for p := (*process)(nil); ; {
		var able []*process
		for _, p := range running {
			if waiting[p] && !p.ended {
				able = append(able, p)
			}
		}
		if len(able) == 0 {
			return
		}
		// Long runs of one process show what short ones seldom do.
		if p == nil || p.ended || w.dice.IntN(4) == 0 {
			p = able[w.dice.IntN(len(able))]
		}
		var fault error
		if w.lose&1 == 1 {
			fault = errLost
		}
		w.lose >>= 1
		if w.faults {
			switch w.dice.IntN(25) {
			case 0:
				fault = errLost
			case 1:
				fault = errKilled
				w.killed++
			}
		}
		p.turn <- fault
		waiting[<-w.ready] = true
	}
}

// Several callers park and drop dead letters of one message at the same time; answers are lost and
// callers are killed. A stored dead letter always has its message, or its drop stopped half way and
// can be completed. If no caller was killed, no object or item remains.
func TestNoDeadLetterLosesItsMessage(t *testing.T) {
	t.Parallel()
	seeds := 20_000
	if testing.Short() {
		seeds = 4_000
	}
	for seed := range seeds {
		w := &world{
			dice: rand.New(rand.NewPCG(uint64(seed), 1)), items: map[shard.DocID]item{}, objects: map[string]string{},
			ready: make(chan *process), faults: seed%2 == 0,
		}
		letter := func(id, body string) deadletter.Letter {
			return deadletter.Letter{Body: body, Facts: deadletter.Facts{ID: id, Died: time.UnixMilli(1)}}
		}
		park := func(id, body string) func(*Letters) error {
			return func(s *Letters) error {
				_, err := s.Park(context.Background(), letter(id, body))
				return err
			}
		}
		drop := func(id string) func(*Letters) error {
			return func(s *Letters) error { return s.Drop(context.Background(), id) }
		}
		kinds := []func(*Letters) error{
			park("a", "one"), park("a", "one"), park("b", "one"), drop("a"), drop("b"), park("a", "two"), drop("a"),
		}
		var jobs []func(*Letters) error
		dropped := map[string]bool{}
		// An object may stay behind where two messages are parked under one id for the first time.
		// So may one that two park while a third drops it.
		leaves, parks := false, map[string]int{}
		for range 2 + w.dice.IntN(4) {
			n := w.dice.IntN(len(kinds))
			jobs = append(jobs, kinds[n])
			if n <= 2 {
				parks[[]string{"a", "a", "b"}[n]]++
			}
			leaves = leaves || n == 5
			dropped["a"], dropped["b"] = dropped["a"] || n == 3 || n == 6, dropped["b"] || n == 4
		}
		leaves = leaves || parks["a"] > 1 && dropped["a"] || parks["b"] > 1 && dropped["b"]
		if w.dice.IntN(2) == 0 {
			w.run([]func(*Letters) error{park("a", "one")})
			w.run([]func(*Letters) error{park("b", "one")})
		}
		w.run(jobs)

		check := func(when string) {
			t.Helper()
			used := map[string]bool{}
			for doc, it := range w.items {
				id, isLetter := strings.CutPrefix(string(doc), string(dead.doc("")))
				if r := refOf(fields(it)); isLetter {
					used[r.object] = true
					if _, there := w.objects[r.object]; !there && (w.killed == 0 || !dropped[id]) {
						t.Errorf("seed %d, %s: dead letter %s has no message", seed, when, id)
					}
				}
			}
			if w.killed > 0 || leaves {
				return
			}
			if len(used) != len(w.objects) {
				t.Errorf("seed %d, %s: objects %v, used are %v", seed, when, w.objects, used)
			}
			for doc, it := range w.items {
				_, isMessage := strings.CutPrefix(string(doc), string(message.doc("")))
				if isMessage && !used[fields(it).text(string(attrObject))] {
					t.Errorf("seed %d, %s: %s is left behind: %v", seed, when, doc, it)
				}
			}
		}
		check("at the end")
		// Another Park or Drop completes a call that stopped half way.
		w.faults = false
		if w.dice.IntN(2) == 0 {
			dropped = map[string]bool{}
			w.run([]func(*Letters) error{park("a", "one")})
			w.run([]func(*Letters) error{park("b", "one")})
			check("parked again")
		}
		w.run([]func(*Letters) error{drop("a"), drop("b")})
		clean := w.killed == 0 && !leaves
		if clean && len(w.items) > 0 || w.items[dead.doc("a")] != nil || w.items[dead.doc("b")] != nil {
			t.Errorf("seed %d: after all are dropped there are %v", seed, w.items)
		}
		if t.Failed() {
			return
		}
	}
}

// Even if answers are lost, the body of a dead letter has one object: each try finds the name that
// the first one wrote, and stores the body under it.
func TestAParkWithoutAnswersStoresItsBodyOnce(t *testing.T) {
	t.Parallel()
	const calls = 12
	for lose := range uint(1 << calls) {
		w := &world{
			dice: rand.New(rand.NewPCG(1, 1)), items: map[shard.DocID]item{}, objects: map[string]string{},
			ready: make(chan *process), lose: lose,
		}
		w.run([]func(*Letters) error{func(s *Letters) error {
			_, err := s.Park(context.Background(), deadletter.Letter{
				Body: "one", Facts: deadletter.Facts{ID: "a", Died: time.UnixMilli(1)},
			})
			return err
		}})
		object := refOf(fields(w.items[dead.doc("a")])).object
		if len(w.objects) != 1 || w.objects[object] != "one" {
			t.Fatalf("answers lost %012b: %d objects, the dead letter has %q", lose, len(w.objects), object)
		}
	}
}

// A body that is sent again and again is many versions where the source takes the time of sending
// for one, and each may die. Their references must not outgrow the 400 KB of an item.
func TestAMessageHasRoomForAnyNumberOfDeadLetters(t *testing.T) {
	t.Parallel()
	w := &world{
		dice: rand.New(rand.NewPCG(1, 1)), items: map[shard.DocID]item{}, objects: map[string]string{},
		ready: make(chan *process),
	}
	const n = perItem + 500
	all := func(each func(s *Letters, id string) error) {
		w.run([]func(*Letters) error{func(s *Letters) error {
			for i := range n {
				if err := each(s, fmt.Sprintf("%032x", i)); err != nil {
					t.Error(err)
					break
				}
			}
			return nil
		}})
	}
	all(func(s *Letters, id string) error {
		_, err := s.Park(t.Context(), deadletter.Letter{
			Body: "same", Facts: deadletter.Facts{ID: id, Died: time.UnixMilli(1)},
		})
		return err
	})
	for doc, it := range w.items {
		if len(it) > perItem+10 {
			t.Errorf("%s has %d attributes, want at most %d references", doc, len(it), perItem)
		}
	}
	all(func(s *Letters, id string) error {
		if l, ok, err := s.Get(t.Context(), id); !ok || err != nil || l.Body != "same" {
			return fmt.Errorf("dead letter %s: body %q, %t, %w", id, l.Body, ok, err)
		}
		return s.Drop(t.Context(), id)
	})
	if len(w.items) > 0 || len(w.objects) > 0 {
		t.Errorf("after all are dropped there are %d items and %d objects", len(w.items), len(w.objects))
	}
}
