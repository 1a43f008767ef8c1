// SPDX-License-Identifier: Apache-2.0

//go:build e2elong

package long

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
)

// load changes documents continuously. At the same time, it checks the sink: an older version never
// replaces a newer one, and no document disappears.
type load struct {
	sent int // the number of sent versions; read it only after stop

	s    *ground.Stack
	c    string
	end  context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	newest map[string]int
}

// loadDocuments is the number of documents that a load changes in turn.
const loadDocuments = 20

// startLoad starts to send ten versions a second. Some versions are sent late, or twice. The load
// ends with the test.
func startLoad(t *testing.T, s *ground.Stack, collection string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{s: s, c: collection, end: cancel, newest: make(map[string]int)}
	t.Cleanup(cancel)
	l.done.Go(func() { l.change(ctx, t) })
	l.done.Go(func() { l.watch(ctx, t) })
	return l
}

func (l *load) change(ctx context.Context, t *testing.T) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ; ctx.Err() == nil; <-tick.C {
		id := "doc-" + strconv.Itoa(l.sent%loadDocuments)
		l.mu.Lock()
		version := l.newest[id] + 1
		l.newest[id] = version
		l.mu.Unlock()
		events := []ground.Event{{Collection: l.c, ID: id, Version: version}}
		if l.sent%7 == 0 {
			events = append(events, events[0], ground.Event{Collection: l.c, ID: id, Version: max(version-1, 1)})
		}
		if err := l.s.Send(context.WithoutCancel(ctx), events); err != nil {
			t.Errorf("send version %d of %s: %v", version, id, err)
		}
		l.sent++
	}
}

func (l *load) watch(ctx context.Context, t *testing.T) {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	seen := make(map[string]int)
	for ; ctx.Err() == nil; <-tick.C {
		hits, err := l.s.Search.Look(ctx, l.s.Index(l.c))
		if err != nil || hits == nil {
			continue // the sink does not answer, or the index does not exist yet
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

// commits waits until each document has this number of further commits.
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
	for i := range loadDocuments {
		id := "doc-" + strconv.Itoa(i)
		all[id], _ = strconv.Atoi(l.s.Row(t, ground.Key(l.c, id)).Committed.VersionText()) // 0 for none yet
	}
	return all
}

// stop ends the load, waits until the newest version of each document is committed, and returns
// these versions.
func (l *load) stop(t *testing.T) map[string]int {
	t.Helper()
	l.end()
	l.done.Wait()
	l.s.Drained(t)
	for id, version := range l.newest {
		l.s.Committed(t, ground.Key(l.c, id), version)
	}
	l.s.Drained(t)
	return l.newest
}
