// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Load changes documents continuously. At the same time it watches the sink: an older version must
// never replace a newer one, and no document may disappear. Create it with [Stack.Load].
type Load struct {
	Rate LoadRate

	s    *Stack
	c    string
	end  context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	sent   int // number of versions
	newest map[string]int
	faults []string // at most maxFaults
}

// LoadRate says how a load changes documents. Every field has a default.
type LoadRate struct {
	Documents int // number of documents, default 20
	PerSecond int // number of versions a second, default 10
	Burst     int // number of versions of one document, one after the other, default 1
}

// maxFaults bounds the number of faults that a load reports.
const maxFaults = 20

// Load starts to send versions of a collection's documents to the live queue. It sends every
// seventh version twice, followed by the version before. It ends with ctx, or with Stop.
func (s *Stack) Load(ctx context.Context, collection string, rate LoadRate) *Load {
	ctx, cancel := context.WithCancel(ctx)
	rate = LoadRate{cmp.Or(rate.Documents, 20), cmp.Or(rate.PerSecond, 10), cmp.Or(rate.Burst, 1)}
	l := &Load{Rate: rate, s: s, c: collection, end: cancel, newest: make(map[string]int)}
	l.done.Go(func() { l.change(ctx) })
	l.done.Go(func() { l.watch(ctx) })
	return l
}

func (l *Load) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.faults) < maxFaults {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// document returns the id of the document that the version with this number belongs to.
func (l *Load) document(sent int) string {
	return "doc-" + strconv.Itoa(sent/l.Rate.Burst%l.Rate.Documents)
}

func (l *Load) change(ctx context.Context) {
	tick := time.NewTicker(time.Second / time.Duration(l.Rate.PerSecond))
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		id := l.document(n)
		l.mu.Lock()
		version := l.newest[id] + 1
		l.newest[id], l.sent = version, n+1
		l.mu.Unlock()
		events := []Event{{Collection: l.c, ID: id, Version: version}}
		if n%7 == 0 {
			events = append(events, events[0], Event{Collection: l.c, ID: id, Version: max(version-1, 1)})
		}
		// A version that was counted must be sent, also when the load ends.
		if err := l.s.Send(context.WithoutCancel(ctx), events); err != nil {
			l.fault("send version %d of %s: %v", version, id, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func (l *Load) watch(ctx context.Context) {
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
				l.fault("the sink held version %d of %s, and then %q", seen[id], id, hit.Meta.Version)
			}
			seen[id] = version
		}
		for id, version := range seen {
			if _, there := hits[id]; !there {
				l.fault("the sink held version %d of %s, and then nothing", version, id)
				delete(seen, id)
			}
		}
	}
}

// Versions returns the committed version of each document. It is 0 for a document without a commit.
func (l *Load) Versions(ctx context.Context) (map[string]int, error) {
	all := make(map[string]int)
	keys := make([]shard.DocID, l.Rate.Documents)
	for i := range keys {
		keys[i] = Key(l.c, "doc-"+strconv.Itoa(i))
	}
	rows, err := l.s.Rows.Read(ctx, keys, shard.Consistent)
	if err != nil {
		return nil, fmt.Errorf("read the rows of the load: %w", err)
	}
	for i, row := range rows {
		all["doc-"+strconv.Itoa(i)], _ = strconv.Atoi(row.Committed.VersionText()) // 0 without a commit
	}
	return all, nil
}

// Stop ends the load. It returns the newest version of each document, the number of versions that
// were sent, and the faults that the load has seen.
func (l *Load) Stop() (newest map[string]int, sent int, faults []string) {
	l.end()
	l.done.Wait()
	return l.newest, l.sent, l.faults
}
