// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

var _ sink.Rebuilder = (*Sink)(nil)

const (
	// intoSuffix is the end of the alias through which a rebuild writes to its new index. A bulk
	// request that requires an alias never creates an index again after it was dropped.
	intoSuffix = ".into"
	// switchWait is the longest time that the engine may take to switch a name.
	switchWait = "10s"
)

// slowCall is the time-out of each request of a rebuild. slowCall is shorter than the time after
// which another program may take over the rebuild.
const slowCall = 20 * time.Second

// slow sends a request with the time-out slowCall. A rebuild takes hours, but none of its requests
// does.
func (s *Sink) slow(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, slowCall)
	defer cancel()
	return s.client.Ask(ctx, method, path, body, into)
}

// madeName matches the names of indices that rebuilds create: the name of the collection's index,
// ".r" and the time in UTC.
var madeName = regexp.MustCompile(`^(.+)\.r[0-9]{14}$`)

// Into returns a sink for one collection that writes to the named index.
func (s *Sink) Into(c shard.Collection, index string) sink.Sink { return s.into(c, index) }

func (s *Sink) into(c shard.Collection, index string) *Sink {
	if name, ok := s.names.Index(c); ok {
		s.targets.expect(name, index)
	}
	o := s.Options
	o.Index, o.Collections = index+intoSuffix, []shard.Collection{c}
	return &Sink{
		Options: o, names: sink.OneName(o.Index, c), client: s.client, requireAlias: true,
		targets: newTargets(),
	}
}

// Standing returns the index behind the name of a collection.
func (s *Sink) Standing(ctx context.Context, c shard.Collection) (sink.Standing, error) {
	at := sink.Standing{}
	name, ok := s.names.Index(c)
	at.Name = name
	unfit := func(format string, args ...any) (sink.Standing, error) {
		return at, fmt.Errorf("%s %w: %s", at.Name, sink.ErrUnfit, fmt.Sprintf(format, args...))
	}
	switch {
	case !ok:
		return at, fmt.Errorf("%s %w: the sink's index is for another collection", c, sink.ErrUnfit)
	case s.Serverless || !s.Versions:
		return unfit("a sink without versions accepts older documents over newer ones")
	}
	found, err := s.resolveNames(ctx, []string{name})
	if exchange.Status(err) == http.StatusNotFound {
		return unfit("the index does not exist: run `lull index install-template` to prepare the sink; the first document creates the index")
	}
	if err != nil {
		return at, fmt.Errorf("find the index %s: %w", name, err)
	}
	switch known := found[name]; {
	case known.missing:
		return unfit("the index does not exist: run `lull index install-template` to prepare the sink; the first document creates the index")
	case known.fault == classManyIndices:
		return unfit("it is an alias of several indices: let it name only the index that lull writes")
	case known.fault != "":
		return unfit("it is a data stream")
	default:
		at.Index, at.Alias = known.lands, known.lands != name
	}
	if strings.HasSuffix(at.Index, intoSuffix) {
		return unfit("its name ends with %s, which is kept for rebuilds: rename it", intoSuffix)
	}
	var count struct {
		Count int64 `json:"count"`
	}
	if err := s.slow(ctx, http.MethodGet, "/"+pathOf(at.Index)+"/_count", nil, &count); err != nil {
		return at, fmt.Errorf("count %s: %w", at.Index, err)
	}
	at.Documents = count.Count
	return at, nil
}

// aliases returns the aliases of an index, each with its definition.
func (s *Sink) aliases(ctx context.Context, index string) (map[string]object, error) {
	var has map[string]struct {
		Aliases map[string]object `json:"aliases"`
	}
	if err := s.slow(ctx, http.MethodGet, "/"+pathOf(index)+"/_alias", nil, &has); err != nil {
		return nil, fmt.Errorf("read the aliases of %s: %w", index, err)
	}
	return has[index].Aliases, nil
}

// Switch moves all names to the new index in one request.
func (s *Sink) Switch(ctx context.Context, c shard.Collection, from, into string) error {
	at, err := s.Standing(ctx, c)
	switch {
	case err != nil:
		return err
	case at.Index == into:
		return nil
	case at.Index != from:
		return fmt.Errorf("%s names the index %s now, not %s: another program or person has changed it", at.Name, at.Index,
			from)
	}
	names, err := s.aliases(ctx, from)
	if err != nil {
		return err
	}
	if !at.Alias {
		names[at.Name] = object{}
	}
	var actions []object
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if strings.HasSuffix(name, intoSuffix) {
			continue
		}
		add := maps.Clone(names[name])
		add["index"], add["alias"] = into, name
		actions = append(actions, object{"add": add})
		if at.Alias {
			actions = append(actions, object{"remove": object{"index": from, "alias": name, "must_exist": true}})
		}
	}
	if !at.Alias {
		actions = append(actions, object{"remove_index": object{"index": from}})
	}
	// After this refresh, searches find in the new index what they found in the old index.
	if err := s.slow(ctx, http.MethodPost, "/"+pathOf(into)+"/_refresh", nil, nil); err != nil {
		return fmt.Errorf("refresh %s: %w", into, err)
	}
	var answer struct {
		Acknowledged bool `json:"acknowledged"`
	}
	patience := "cluster_manager_timeout"
	if s.Product == Elasticsearch {
		patience = "master_timeout"
	}
	err = s.slow(ctx, http.MethodPost, "/_aliases?"+patience+"="+switchWait+"&timeout="+switchWait,
		object{"actions": actions}, &answer)
	if err == nil && !answer.Acknowledged {
		err = errors.New("not every node of the cluster has confirmed in time")
	}
	if err != nil {
		return fmt.Errorf("switch %s to %s: %w", at.Name, into, err)
	}
	s.targets.forget(at.Name)
	return nil
}

// Settle removes the alias through which the rebuild wrote.
func (s *Sink) Settle(ctx context.Context, index string) error {
	err := s.slow(ctx, http.MethodDelete, "/"+pathOf(index)+"/_alias/"+pathOf(index+intoSuffix), nil, nil)
	if err != nil && exchange.Status(err) != http.StatusNotFound {
		return fmt.Errorf("delete the alias of the rebuild: %w", err)
	}
	return nil
}

// Earlier lists the indices that earlier rebuilds have left behind.
func (s *Sink) Earlier(ctx context.Context, c shard.Collection) ([]string, error) {
	name, ok := s.names.Index(c)
	if !ok {
		return nil, nil
	}
	var has map[string]struct {
		Aliases map[string]object `json:"aliases"`
	}
	if err := s.slow(ctx, http.MethodGet, "/"+pathOf(name+".r*")+"/_alias", nil, &has); err != nil {
		return nil, fmt.Errorf("list earlier indices: %w", err)
	}
	var names []string
	for index, of := range has {
		if m := madeName.FindStringSubmatch(index); m != nil && m[1] == name && len(of.Aliases) == 0 {
			names = append(names, index)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, nil
}

// Drop deletes an index.
func (s *Sink) Drop(ctx context.Context, index string) error {
	err := s.slow(ctx, http.MethodDelete, "/"+url.PathEscape(index), nil, nil)
	if exchange.Status(err) == http.StatusBadRequest {
		if found, err := s.resolveNames(ctx, []string{index}); err == nil && found[index].lands != index {
			return nil // the index was deleted, and its name is now an alias of another index
		}
	}
	if err != nil && exchange.Status(err) != http.StatusNotFound {
		return fmt.Errorf("delete the index %s: %w", index, err)
	}
	return nil
}
