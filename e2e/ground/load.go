package ground

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Load changes documents all the time, and watches what the sink holds meanwhile: no version is
// ever replaced by an older one, and no document goes.
type Load struct {
	Sent int // versions; read it after Stop

	s    *Stack
	c    string
	end  context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	newest map[string]int
}

// loadDocuments are those that a load changes in turn.
const loadDocuments = 20

// Load begins to send: ten versions a second, some of them late and twice. It ends with the test.
func (s *Stack) Load(t *testing.T, collection string) *Load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &Load{s: s, c: collection, end: cancel, newest: make(map[string]int)}
	t.Cleanup(cancel)
	l.done.Go(func() { l.send(ctx, t) })
	l.done.Go(func() { l.watch(ctx, t) })
	return l
}

func (l *Load) send(ctx context.Context, t *testing.T) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ; ctx.Err() == nil; <-tick.C {
		id := "doc-" + strconv.Itoa(l.Sent%loadDocuments)
		l.mu.Lock()
		version := l.newest[id] + 1
		l.newest[id] = version
		l.mu.Unlock()
		events := []Event{{Collection: l.c, ID: id, Version: version}}
		if l.Sent%7 == 0 {
			events = append(events, events[0], Event{Collection: l.c, ID: id, Version: max(version-1, 1)})
		}
		if err := l.s.direct(context.WithoutCancel(ctx), events); err != nil {
			t.Errorf("send version %d of %s: %v", version, id, err)
		}
		l.Sent++
	}
}

func (l *Load) watch(ctx context.Context, t *testing.T) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	seen := make(map[string]int)
	for ; ctx.Err() == nil; <-tick.C {
		hits, err := l.s.Search.look(ctx, l.s.Index(l.c))
		if err != nil || hits == nil {
			continue // away, or there is no index yet
		}
		for id, hit := range hits {
			version, err := strconv.Atoi(hit.Meta.Version)
			if err != nil || version < seen[id] {
				t.Errorf("the sink held version %d of %s, and then %q", seen[id], id, hit.Meta.Version)
			}
			seen[id] = version
		}
		for id, version := range seen {
			if _, there := hits[id]; !there {
				t.Errorf("the sink held version %d of %s, and then nothing", version, id)
				delete(seen, id)
			}
		}
	}
}

// Commits waits until each document had so many more commits.
func (l *Load) Commits(t *testing.T, more int) {
	t.Helper()
	before := l.versions(t)
	Until(t, fmt.Sprintf("%d more versions of every document", more), func() (bool, string) {
		var waiting []string
		for id, now := range l.versions(t) {
			if now < before[id]+more {
				waiting = append(waiting, id)
			}
		}
		return len(waiting) == 0, strings.Join(waiting, " ")
	})
}

func (l *Load) versions(t *testing.T) map[string]int {
	t.Helper()
	all := make(map[string]int)
	for i := range loadDocuments {
		id := "doc-" + strconv.Itoa(i)
		all[id], _ = strconv.Atoi(l.s.Row(t, Key(l.c, id)).Committed.VersionText()) // 0 for none yet
	}
	return all
}

// Stop ends the load, waits until all that was sent is committed, and returns the newest version of
// each document.
func (l *Load) Stop(t *testing.T) map[string]int {
	t.Helper()
	l.end()
	l.done.Wait()
	l.s.Drained(t)
	for id, version := range l.newest {
		l.s.Committed(t, Key(l.c, id), version)
	}
	l.s.Drained(t)
	return l.newest
}
