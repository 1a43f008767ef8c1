// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// target is what the engine answered about the index behind a name.
type target struct {
	at      time.Time
	lands   string // the index that a write to the name reaches, "" if it is not known
	fault   string // the class of the name's fault, "" for none
	missing bool   // there is neither an index nor an alias of that name: a write creates the index, if that is allowed
}

// targets caches the indices behind names. The type targets is safe for concurrent use.
type targets struct {
	mu    sync.Mutex
	known map[string]target
	next  map[string]string // by name: the index to which a rebuild will switch the name
}

const (
	// targetFor is how long a cached answer is used. The answer to a write names the index that was
	// written, and so shows a later change. Such an answer does not show that an index was deleted:
	// see [needsIndex].
	targetFor = time.Minute
	// maxTargets limits how many names are cached, because senders choose the names.
	maxTargets = 1_000
)

func newTargets() *targets {
	return &targets{known: map[string]target{}, next: map[string]string{}}
}

func (t *targets) get(name string) (target, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.known[name]
	return known, ok && time.Since(known.at) < targetFor
}

func (t *targets) put(name string, known target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxTargets {
		clear(t.known)
	}
	t.known[name] = known
}

// expect records that a rebuild may switch the name to the given index at any time.
func (t *targets) expect(name, index string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next[name] = index
}

// moved reports whether a switch of the name to the index was expected. If the switch was expected,
// moved records that the name was switched.
func (t *targets) moved(name, index string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next[name] != index {
		return false
	}
	t.known[name] = target{at: time.Now(), lands: index}
	return true
}

func (t *targets) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, name)
}

// place returns the entries that can be written, and gives every other op the outcome
// Configuration. An op cannot be written if its name is an alias of several indices: the document
// may be in each index, but a write reaches only one. A delete of a document that should exist
// needs an existing index. Otherwise the engine would create an empty index and find no document to
// delete.
//
// place also returns the index behind the name of each entry.
func (s *Sink) place(ctx context.Context, b *exchange.Batch, entries []exchange.Entry) (
	kept []exchange.Entry, found map[string]target,
) {
	if s.Serverless || s.requireAlias || len(entries) == 0 {
		return entries, nil
	}
	var other bool
	found, other = s.resolve(ctx, entries)
	if other {
		b.All(entries, sink.Outcome{Kind: sink.Configuration, Reason: classProduct})
		return nil, nil
	}
	kept = entries[:0]
	for _, e := range entries {
		at := found[e.Index]
		fault := at.fault
		if at.missing && needsIndex(e) {
			fault = classNoIndex
		}
		if fault != "" {
			b.Outcomes[e.Position] = sink.Outcome{Kind: sink.Configuration, Apart: true, Reason: fault}
			continue
		}
		kept = append(kept, e)
	}
	return kept, found
}

// needsIndex reports whether an op can only be applied if its index exists. Such an op is a delete
// of a document that should exist. For such an op, resolve does not use the cache.
func needsIndex(e exchange.Entry) bool { return e.Present && e.Kind == shard.Delete }

// resolve returns the indices behind the names of the entries. If the engine does not answer, or
// does not permit the question, the indices are unknown. resolve also reports whether the engine is
// another product.
func (s *Sink) resolve(ctx context.Context, entries []exchange.Entry) (found map[string]target, other bool) {
	found = map[string]target{}
	var ask []string
	for _, e := range entries {
		known, ok := s.targets.get(e.Index)
		found[e.Index] = known
		if (!ok || needsIndex(e)) && !slices.Contains(ask, e.Index) {
			ask = append(ask, e.Index)
		}
	}
	for len(ask) > 0 && ctx.Err() == nil {
		n, bytes := 0, 0
		for ; n < len(ask) && (n == 0 || bytes+len(ask[n]) < longestTarget); n++ {
			bytes += len(ask[n]) + 1
		}
		some, err := s.resolveSome(ctx, ask[:n])
		if err != nil {
			return found, errors.Is(err, ErrProduct)
		}
		maps.Copy(found, some)
		ask = ask[n:]
	}
	return found, false
}

// resolveSome asks the engine about several names in one request and caches the answer. The request
// may take a quarter of the remaining time, because the writes need the other three quarters.
func (s *Sink) resolveSome(ctx context.Context, ask []string) (map[string]target, error) {
	now := time.Now()
	if deadline, ok := ctx.Deadline(); ok {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/4)
		defer cancel()
	}
	some, err := s.resolveNames(ctx, ask)
	status := exchange.Status(err)
	// The engine does not permit this request, or does not know it.
	denied := status >= 400 && status < 500 && status != http.StatusTooManyRequests
	for _, name := range ask {
		known := some[name]
		known.at = now
		switch {
		case denied, known.lands != "":
			s.targets.put(name, known)
		case err == nil: // do not cache a fault or a missing index, because an operator may fix it at any time
			s.targets.forget(name)
		}
	}
	return some, err
}

// resolved is the engine's answer about the indices behind names.
type resolved struct {
	Indices []struct {
		Name       string   `json:"name"`
		Attributes []string `json:"attributes"`
	} `json:"indices"`
	Aliases []struct {
		Name    string   `json:"name"`
		Indices []string `json:"indices"`
	} `json:"aliases"`
	DataStreams []struct {
		Name string `json:"name"`
	} `json:"data_streams"`
}

// resolved asks the engine for the indices behind names, which are separated by commas.
// Elasticsearch answers 404 if one of them is missing, unless the request says to ignore it.
func (s *Sink) resolved(ctx context.Context, names string) (answer resolved, err error) {
	path := "/_resolve/index/" + pathOf(names)
	if s.Product == Elasticsearch {
		path += "?ignore_unavailable=true"
	}
	err = s.client.Ask(ctx, http.MethodGet, path, nil, &answer)
	return answer, err
}

// resolveNames asks the engine for the index behind each of the names.
func (s *Sink) resolveNames(ctx context.Context, ask []string) (map[string]target, error) {
	answer, err := s.resolved(ctx, strings.Join(ask, ","))
	if err != nil {
		return nil, err
	}
	found := map[string]target{}
	for _, name := range ask {
		found[name] = target{missing: true}
	}
	for _, i := range answer.Indices {
		found[i.Name] = target{lands: i.Name}
	}
	for _, a := range answer.Aliases {
		found[a.Name] = target{fault: classManyIndices}
		if len(a.Indices) == 1 {
			found[a.Name] = target{lands: a.Indices[0]}
		}
	}
	for _, d := range answer.DataStreams {
		found[d.Name] = target{fault: classDataStream}
	}
	return found, nil
}
