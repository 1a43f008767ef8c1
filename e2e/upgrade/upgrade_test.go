//go:build e2eupgrade

package upgrade

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operate"
)

var stack *ground.Stack

func TestMain(m *testing.M) {
	ground.Main(m, func(ctx context.Context, g *ground.Ground) (err error) {
		stack, err = g.DeployEarlier(ctx, ground.Settings{Stack: "lull-upgrade", Kind: config.FlightExpress})
		return err
	})
}

// An upgrade and a rollback while documents change all the time: nothing is lost, and the sink never
// goes back. Each build reads the rows, manifests, messages and dead letters of the other.
func TestUpgradeAndRollBackUnderLoad(t *testing.T) {
	s := stack
	c := s.Collection("upgrade")
	deleted, before := ground.Key(c, "deleted"), s.Counts(t)
	s.Direct(t, ground.Event{Collection: c, ID: "deleted", Version: 5, Delete: true})
	s.Committed(t, deleted, 5)
	s.DirectBodies(t, "{no json "+c)
	var letters []operate.Letter
	ground.Until(t, "the earlier build parks a dead letter", func() (bool, string) {
		s.JSON(t, &letters, "dead", "list")
		return len(letters) == 1, fmt.Sprint(len(letters))
	})
	l := start(t, s, c)
	// Sent by the earlier build's receive to its queue again, with a delay: today's gets it.
	due := time.Now().Add(25 * time.Second)
	s.Direct(t, ground.Event{Collection: c, ID: "later", Version: 1, NotBefore: due})
	s.Counted(t, before, "Scheduled", 1)

	l.commits(t, 3)
	t.Log("upgrade")
	s.Upgrade(t)
	l.commits(t, 3)
	s.Committed(t, ground.Key(c, "later"), 1)
	s.Direct(t, ground.Event{Collection: c, ID: "deleted", Version: 4},
		ground.Event{Collection: c, ID: "deleted-later", Version: 5, Delete: true})
	s.Committed(t, ground.Key(c, "deleted-later"), 5)
	var shown operate.Letter
	s.JSON(t, &shown, "dead", "show", letters[0].ID)
	if shown.Body != "{no json "+c {
		t.Errorf("the dead letter of the earlier build holds %q", shown.Body)
	}
	s.Says(t, 0, "dropped: 1", "dead", "drop", letters[0].ID)

	t.Log("roll back")
	s.RollBack(t)
	l.commits(t, 3)
	s.Direct(t, ground.Event{Collection: c, ID: "deleted-later", Version: 4})
	t.Log("upgrade once more")
	s.Upgrade(t)
	l.commits(t, 3)

	want := l.stop(t)
	s.Drained(t)
	for id, version := range want {
		s.Committed(t, ground.Key(c, id), version)
	}
	s.Drained(t)
	want["later"] = 1
	s.Holds(t, c, want)
	got := s.Counts(t).Since(before)
	t.Logf("%d versions of %d documents: %v", l.sent, len(want)-1, got)
	s.Never(t, before, "SinkNewer", "Rejected", "Panics", "ConfigurationErrors", "UnknownSchema", "InvalidEvents")
	if got["Parked"] != 1 {
		t.Errorf("%d dead letters, want the one that was sent before", got["Parked"])
	}
}

// A row that newer code wrote is left alone, the function says so, and nothing is lost: as when this
// build is what somebody rolls back to.
func TestARowOfNewerCodeIsLeftAlone(t *testing.T) {
	s := stack
	c := s.Collection("newer")
	key := ground.Key(c, "doc")
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 1})
	s.Committed(t, key, 1)
	s.Drained(t)
	was, before := s.Row(t, key).Schema, s.Counts(t)
	s.Schema(t, key, 99)
	s.Direct(t, ground.Event{Collection: c, ID: "doc", Version: 2})
	ground.Until(t, "the schema is noticed", func() (bool, string) {
		got := s.Counts(t).Since(before)
		return got["UnknownSchema"] > 0, fmt.Sprint(got)
	})
	s.Holds(t, c, map[string]int{"doc": 1})
	s.Schema(t, key, int64(was))
	s.Committed(t, key, 2)
	s.Drained(t)
	s.Holds(t, c, map[string]int{"doc": 2})
}

// load changes documents all the time, and watches what the sink holds.
type load struct {
	s    *ground.Stack
	c    string
	end  context.CancelFunc
	done sync.WaitGroup
	sent int

	mu     sync.Mutex
	newest map[string]int
}

const documents = 20

// start begins to send: a version of each document after the other, some of them late and twice.
func start(t *testing.T, s *ground.Stack, c string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{s: s, c: c, end: cancel, newest: make(map[string]int)}
	t.Cleanup(cancel)
	l.done.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			id := "doc-" + strconv.Itoa(l.sent%documents)
			l.mu.Lock()
			version := l.newest[id] + 1
			l.newest[id] = version
			l.mu.Unlock()
			events := []ground.Event{{Collection: c, ID: id, Version: version}}
			if l.sent%7 == 0 {
				events = append(events, events[0], ground.Event{Collection: c, ID: id, Version: max(version-1, 1)})
			}
			s.Direct(t, events...)
			l.sent++
		}
	})
	l.done.Go(func() {
		seen := make(map[string]int)
		for tick := time.NewTicker(300 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			hits := s.Search.Documents(t, s.Index(c))
			for id, hit := range hits {
				version, err := strconv.Atoi(hit.Meta.Version)
				if err != nil || version < seen[id] {
					t.Errorf("the sink held version %d of %s, and then %q", seen[id], id, hit.Meta.Version)
				}
				seen[id] = version
			}
			for id := range seen {
				if _, there := hits[id]; !there {
					t.Errorf("the sink held version %d of %s, and then nothing", seen[id], id)
				}
			}
			if _, there := hits["deleted"]; there {
				t.Error("a deleted document is back")
			}
		}
	})
	return l
}

// commits waits until each document had so many more commits: the build that runs now does its
// work.
func (l *load) commits(t *testing.T, more int) {
	t.Helper()
	before := l.versions(t)
	ground.Until(t, fmt.Sprintf("%d more versions of every document", more), func() (bool, string) {
		var waiting []string
		for id, now := range l.versions(t) {
			if now < before[id]+more {
				waiting = append(waiting, id)
			}
		}
		return len(waiting) == 0, strings.Join(waiting, " ")
	})
}

func (l *load) versions(t *testing.T) map[string]int {
	t.Helper()
	all := make(map[string]int)
	for i := range documents {
		id := "doc-" + strconv.Itoa(i)
		row := l.s.Row(t, ground.Key(l.c, id))
		all[id], _ = strconv.Atoi(ground.Version(row.Committed)) // 0 for none yet
	}
	return all
}

// stop ends the load and returns the newest version of each document.
func (l *load) stop(t *testing.T) map[string]int {
	t.Helper()
	l.end()
	l.done.Wait()
	return l.newest
}
