// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

type slice struct{ rest []feed.Timed }

func (s *slice) Next() (feed.Timed, error) {
	if len(s.rest) == 0 {
		return feed.Timed{}, io.EOF
	}
	t := s.rest[0]
	s.rest = s.rest[1:]
	return t, nil
}

func (s *slice) Close() error { return nil }

// put and del return native events that are sent at a time.
func put(after time.Duration, id string, version int, fields ...string) feed.Timed {
	data := fmt.Sprintf(`{"title":"%s %d"}`, id, version)
	if len(fields) > 0 {
		data = fields[0]
	}
	m := native(id, fmt.Sprintf(`"%d"`, version), `,"data":`+data)
	m.After = after
	return m
}

func del(after time.Duration, id string, version int) feed.Timed {
	m := message(fmt.Sprintf(`{"type":"doc.deleted","subject":%q,"sequence":"%d"}`, id, version))
	m.After = after
	return m
}

// native returns a put event with additional fields.
func native(id, sequence, rest string) feed.Timed {
	return message(fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":%s%s}`, id, sequence, rest))
}

func message(body string) (m feed.Timed) {
	m.Body = body
	return m
}

// publishing returns events of docs documents with 10 versions each. The versions of a document are
// sent in random order within the time spread. 5 % of the versions are sent twice, and 2 % of the
// documents end with a delete. The documents begin at random times within over.
func publishing(seed uint64, docs int, spread, over time.Duration) []feed.Timed {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []feed.Timed
	for d := range docs {
		id := fmt.Sprintf("doc-%04d", d)
		begin := time.Duration(r.Int64N(int64(over) + 1))
		for v := 1; v <= 10; v++ {
			at := begin + time.Duration(r.Int64N(int64(spread)+1))
			m := put(at, id, v)
			if v == 10 && r.Float64() < 0.02 {
				m = del(at, id, v)
			}
			all = append(all, m)
			if r.Float64() < 0.05 {
				m.After += time.Duration(r.Int64N(int64(spread) + 1))
				all = append(all, m)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b feed.Timed) int { return cmp.Compare(a.After, b.After) })
	return all
}

// expected returns the newest version of each document by order key, which the sink must have in
// the end. The function does not use rows, leases or flights.
func expected(t *testing.T, arrivals []feed.Timed) map[string]string {
	t.Helper()
	cfg := config.Default()
	set, err := source.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	newest := map[shard.DocID]shard.OrderKey{}
	want := map[string]string{}
	for _, a := range arrivals {
		e := set.Decode(queue.Message{Body: a.Body})[0].Event
		if e.Key <= newest[e.Doc] {
			continue
		}
		newest[e.Doc] = e.Key
		delete(want, string(e.Doc))
		if e.Op == shard.Put {
			want[string(e.Doc)] = e.Version
		}
	}
	return want
}

func diff(t *testing.T, got, want map[string]string) {
	t.Helper()
	bad := 0
	all := maps.Clone(got)
	maps.Copy(all, want)
	for k := range all {
		if got[k] != want[k] {
			if bad++; bad < 5 {
				t.Errorf("%s: version %q in the sink, want %q", k, got[k], want[k])
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d documents differ", bad)
	}
}

func TestAThousandDocumentsOfTenVersionsSettleAtTheNewest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		spread, over time.Duration
	}{
		{"all within two seconds", 2 * time.Second, 0},
		{"bursts over a minute", 2 * time.Second, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			arrivals := publishing(1, 1000, c.spread, c.over)
			stage{}.play(t, func(s *scene) {
				s.arrive(arrivals)
				r := s.settle()
				s.holdsAll(expected(t, arrivals))
				if ratio := float64(r.SinkItems) / float64(r.Bursts); ratio > 1.05 {
					t.Errorf("%d sink items for %d bursts: %.3f a burst, want at most 1.05", r.SinkItems, r.Bursts, ratio)
				}
				if limit := int64(8000); r.Freshness.P99 > limit {
					t.Errorf("freshness p99 %d ms, want at most quiet + window + 1 s = %d", r.Freshness.P99, limit)
				}
				t.Logf("%+v", r)
			})
		})
	}
}

func TestUnderTheStandardFaultMixNothingIsLost(t *testing.T) {
	t.Parallel()
	seeds := 100
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			arrivals := publishing(uint64(seed), 200, 2*time.Second, 20*time.Second)
			stage{faults: fault.NewMix(fault.Standard(), uint64(seed)), pollers: 3}.play(t, func(s *scene) {
				s.arrive(arrivals)
				r := s.settle()
				s.holdsAll(expected(t, arrivals))
				if len(r.DeadLetters) > 0 {
					t.Errorf("dead letters %+v, want none", r.DeadLetters)
				}
			})
		})
	}
}
