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

// target is the index behind a name, at the time when we asked the engine.
type target struct {
	at      time.Time
	lands   string // the one index that takes writes, "" if it is not known
	fault   string // the class of the name's fault, "" for none
	missing bool   // neither an index nor an alias: a write creates an index of that name, if it may
}

// targets remembers the indices behind names. It is safe for concurrent use.
type targets struct {
	mu    sync.Mutex
	known map[string]target
	next  map[string]string // by name: the index that a rebuild switches it to
}

const (
	// targetFor is how long an answer is used again. The answers to writes show later changes,
	// because they name the index that took the write. They do not show that an index was deleted:
	// see [needsIndex].
	targetFor = time.Minute
	// maxTargets bounds how many names are remembered, because names come from senders.
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

// expect says that the name may move to another index at any time.
func (t *targets) expect(name, index string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next[name] = index
}

// moved reports whether the name was expected to move to the index, and remembers that it did.
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

// place holds back an op without one index to go to. A document behind an alias of several indices
// may be in each of them. A write reaches only one, so a delete would leave the others. The delete
// of a document that should be there needs an existing index. Otherwise the engine would create an
// empty one and find nothing.
//
// It also returns the index behind the name of each entry.
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

// needsIndex reports whether an op can only be applied if its index exists: the delete of a
// document that should be there. For such an op, resolve asks the engine again.
func needsIndex(e exchange.Entry) bool { return e.Present && e.Kind == shard.Delete }

// resolve returns the indices behind the names of the entries. If the engine does not answer, or we
// may not ask, it knows nothing about them. It also reports whether the engine is another product.
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

// resolveSome asks for the names in one request, and has a quarter of the time for it: the writes
// need the rest. It remembers the answer.
func (s *Sink) resolveSome(ctx context.Context, ask []string) (map[string]target, error) {
	now := time.Now()
	if deadline, ok := ctx.Deadline(); ok {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/4)
		defer cancel()
	}
	some, err := s.resolveNames(ctx, ask)
	status := exchange.Status(err)
	// Or it is an engine that does not know the question.
	denied := status >= 400 && status < 500 && status != http.StatusTooManyRequests
	for _, name := range ask {
		known := some[name]
		known.at = now
		switch {
		case denied, known.lands != "":
			s.targets.put(name, known)
		case err == nil: // what is wrong or missing is asked again: it may be fixed
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

// resolved asks the engine for the indices behind names: one, or several with commas. Elasticsearch
// answers 404 if one of them is missing, unless the request says to ignore it.
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
