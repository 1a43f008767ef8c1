// SPDX-License-Identifier: Apache-2.0

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

// world holds a table and a bucket in memory, and schedules the processes that park and drop dead
// letters. Only one process makes a call at a time, and the seed of dice chooses that process. An
// answer may be lost, and a process may be killed.
type world struct {
	dice    *rand.Rand
	items   map[shard.DocID]item
	objects map[string]string
	ready   chan *process
	faults  bool
	lose    uint // bit n is 1 if the answer to call n is lost
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

// call waits until the scheduler lets this process make its next call. The method returns an error
// if the answer is lost or the process is killed.
func (p *process) call() error {
	p.w.ready <- p
	return <-p.turn
}

func (p *process) get(_ context.Context, doc shard.DocID) (item, error) {
	fault := p.call()
	return maps.Clone(p.w.items[doc]), fault
}

func (p *process) waiting(context.Context, kind, span, int, int, func(item) bool) ([]item, string, error) {
	return nil, "", errors.New("the test does not use this call")
}

func (p *process) countWaiting(context.Context, kind, string, map[string]string, item, int) (int, bool, error) {
	return 0, false, errors.New("the test does not use this call")
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

// run runs the jobs concurrently until all have ended. If the answer to a call is lost, the job
// begins anew. If the process is killed, the job ends.
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
	// At first, every process runs until its first call or its end. Afterwards one process runs at
	// a time.
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
		// One process often makes many calls in a row: such runs find other faults than short runs.
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

// Several callers park and drop dead letters of one message at the same time. Answers are lost, and
// callers are killed. A stored dead letter always has its message, or a Drop stopped half way and
// can be completed. If no caller was killed, no unused object or item remains.
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
		// An unused object may remain in two cases. Two messages may be parked under one id for the
		// first time. And two callers may park a dead letter while a third caller drops it.
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
				t.Errorf("seed %d, %s: the bucket has the objects %v, but dead letters use only %v", seed, when, w.objects, used)
			}
			for doc, it := range w.items {
				_, isMessage := strings.CutPrefix(string(doc), string(message.doc("")))
				if isMessage && !used[fields(it).text(string(attrObject))] {
					t.Errorf("seed %d, %s: no dead letter uses the item %s: %v", seed, when, doc, it)
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
			t.Errorf("seed %d: after all dead letters were dropped, the table still has %v", seed, w.items)
		}
		if t.Failed() {
			return
		}
	}
}

// The body of a dead letter has one object, even if answers are lost. Each try finds the object
// name that the first try wrote, and stores the body under that name.
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
			t.Fatalf("lost answers %012b: got %d objects, and the dead letter names %q; want one object with the body", lose, len(w.objects), object)
		}
	}
}

// One body may be sent again and again. If the source takes the version from the sending time, each
// sending is another version, and each may become a dead letter. The references to all these dead
// letters must not outgrow an item, which holds 400 KB.
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
			t.Errorf("the item %s has %d attributes, want at most %d references", doc, len(it), perItem)
		}
	}
	all(func(s *Letters, id string) error {
		if l, ok, err := s.Get(t.Context(), id); !ok || err != nil || l.Body != "same" {
			return fmt.Errorf("dead letter %s: body %q, %t, %w", id, l.Body, ok, err)
		}
		return s.Drop(t.Context(), id)
	})
	if len(w.items) > 0 || len(w.objects) > 0 {
		t.Errorf("after all dead letters were dropped, there are still %d items and %d objects", len(w.items), len(w.objects))
	}
}
