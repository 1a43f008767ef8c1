package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/exchange"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

var _ sink.Rebuilder = (*Sink)(nil)

const (
	// intoSuffix ends the alias by which a new index is written: a bulk request that asks for an alias
	// never makes an index that was dropped meanwhile.
	intoSuffix = ".into"
	// walkSize is how many ids a page of Walk has, walkAlive how long the engine keeps its place.
	walkSize  = 1000
	walkAlive = "10m"
	// transferSize is how many documents Transfer reads at a time.
	transferSize = 100
	// fillSize is how many documents the engine copies at a time.
	fillSize = 1000
	// fillLook is how often a copy is looked at.
	fillLook = time.Second
	// switchWait is how long the engine may take to switch a name.
	switchWait = "10s"
)

// slowCall bounds each request of a rebuild. It is shorter than the time after which another
// program may take the rebuild over.
const slowCall = 20 * time.Second

// slow is ask with a time of its own: a rebuild takes hours, and no request of it does.
func (s *Sink) slow(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, slowCall)
	defer cancel()
	return s.client.Ask(ctx, method, path, body, into)
}

// madeName is how rebuilds name indices: the name of the collection's, and the time in UTC.
var madeName = regexp.MustCompile(`^(.+)\.r[0-9]{14}$`)

// Into returns the sink of one collection that writes to the index of that name.
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

// Standing asks what the name of a collection's index stands for.
func (s *Sink) Standing(ctx context.Context, c shard.Collection) (sink.Standing, error) {
	at := sink.Standing{}
	name, ok := s.names.Index(c)
	at.Name = name
	unfit := func(format string, args ...any) (sink.Standing, error) {
		return at, fmt.Errorf("%s %w: %s", at.Name, sink.ErrUnfit, fmt.Sprintf(format, args...))
	}
	switch {
	case !ok:
		return at, fmt.Errorf("%s %w: the index of the sink is for another collection", c, sink.ErrUnfit)
	case s.Serverless || !s.Versions:
		return unfit("a sink without versions takes older documents over newer ones")
	}
	found, err := s.resolveNames(ctx, []string{name})
	if exchange.Status(err) == http.StatusNotFound {
		return unfit("there is no such index: `lull init` prepares the sink, and the first document makes it")
	}
	if err != nil {
		return at, fmt.Errorf("find the index %s: %w", name, err)
	}
	switch known := found[name]; {
	case known.missing:
		return unfit("there is no such index: `lull init` prepares the sink, and the first document makes it")
	case known.fault == classManyIndices:
		return unfit("an alias of several indices: let it name the one that lull writes")
	case known.fault != "":
		return unfit("it is a data stream")
	default:
		at.Index, at.Alias = known.lands, known.lands != name
	}
	if strings.HasSuffix(at.Index, intoSuffix) {
		return unfit("its name ends with %s, as those of rebuilds do", intoSuffix)
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

// private are settings that belong to one index.
var private = regexp.MustCompile(
	`^index\.(uuid|creation_date|provided_name|version\.|resize\.|shrink\.|blocks\.|verified_before_close|` +
		`routing\.allocation\.initial_recovery)`)

// Create makes the new index, with a private alias.
func (s *Sink) Create(ctx context.Context, n sink.NewIndex) error {
	settings, mapping, err := s.like(ctx, n.Like)
	if err != nil {
		return err
	}
	if n.Mapping != nil {
		var own object
		if err := json.Unmarshal(n.Mapping, &own); err != nil {
			return fmt.Errorf("read the mapping: %w", err)
		}
		if inner, ok := own["settings"].(object); ok { // the body of a request that makes an index
			merge(settings, inner)
		}
		if inner, ok := own["mappings"].(object); ok {
			own = inner
		}
		mapping = own
	}
	if n.Settings != nil {
		var own object
		if err := json.Unmarshal(n.Settings, &own); err != nil {
			return fmt.Errorf("read the settings: %w", err)
		}
		if inner, ok := own["settings"].(object); ok {
			own = inner
		}
		merge(settings, own)
	}
	if err := addMeta(mapping); err != nil {
		return err
	}
	body := object{
		"settings": settings, "mappings": mapping,
		"aliases": object{n.Name + intoSuffix: object{"is_hidden": true}},
	}
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("make the index %s: %w", n.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, slowCall)
	defer cancel()
	err = s.put(ctx, "/"+url.PathEscape(n.Name), text)
	var refused *said
	if err == nil || errors.As(err, &refused) && refused.class == "resource_already_exists_exception" {
		return nil
	}
	return fmt.Errorf("make the index %s: %w", n.Name, err)
}

// put makes an index or a template. What the engine refuses it for is said in its own words: they
// quote names and the mapping, which the operator wrote, and no document.
func (s *Sink) put(ctx context.Context, path string, text []byte) error {
	a := s.client.Do(ctx, http.MethodPut, path, exchange.TypeJSON, text, exchange.MaxAnswer)
	if f, ours := parseFault(a.Body); a.Err == nil && ours && a.Status == http.StatusBadRequest {
		return &said{f.class(), f.said()}
	}
	return s.client.Read(a, nil)
}

// said is what the engine refuses an index or a template for.
type said struct{ class, text string }

func (e *said) Error() string        { return "the engine says: " + e.text }
func (e *said) Is(target error) bool { return target == sink.ErrUnfit }

// said is what the engine says of a mapping or of settings, its causes too.
func (f fault) said() string {
	text := f.Reason
	for c := f.CausedBy; c != nil; c = c.CausedBy {
		text += ": " + c.Reason
	}
	const most = 500
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// like reads the settings, flat, and the mapping of an index.
func (s *Sink) like(ctx context.Context, index string) (settings, mapping object, err error) {
	var has map[string]struct {
		Settings object `json:"settings"`
		Mappings object `json:"mappings"`
	}
	if err := s.slow(ctx, http.MethodGet, "/"+pathOf(index)+"?flat_settings=true", nil, &has); err != nil {
		return nil, nil, fmt.Errorf("read the settings of %s: %w", index, err)
	}
	settings, mapping = has[index].Settings, has[index].Mappings
	if settings == nil {
		return nil, nil, fmt.Errorf("read the settings of %s: %w", index, s.client.Odd())
	}
	maps.DeleteFunc(settings, func(name string, _ any) bool { return private.MatchString(name) })
	if mapping == nil {
		mapping = object{}
	}
	return settings, mapping, nil
}

// merge puts settings over flat ones, however they are written: nested or flat, with index. or
// without.
func merge(flat, own object) {
	for name, value := range own {
		if name == "index" || strings.HasPrefix(name, "index.") {
			flatten(flat, name, value)
		} else {
			flatten(flat, "index."+name, value)
		}
	}
}

func flatten(flat object, name string, value any) {
	if inner, ok := value.(object); ok {
		for n, v := range inner {
			flatten(flat, name+"."+n, v)
		}
		return
	}
	flat[name] = value
}

// addMeta adds lull's own member to a mapping that does not have it: a strict mapping would refuse
// every document.
func addMeta(mapping object) error {
	var t struct {
		Template struct {
			Mappings struct {
				Properties object `json:"properties"`
			} `json:"mappings"`
		} `json:"template"`
	}
	if err := json.Unmarshal(templateText, &t); err != nil {
		return fmt.Errorf("read template: %w", err)
	}
	properties, ok := mapping["properties"].(object)
	if !ok {
		properties = object{}
		mapping["properties"] = properties
	}
	if _, has := properties[sink.MetaField]; !has {
		properties[sink.MetaField] = t.Template.Mappings.Properties[sink.MetaField]
	}
	return nil
}

// task is a copy as the engine shows it.
type task struct {
	Node        string `json:"node"`
	ID          int64  `json:"id"`
	Description string `json:"description"`
	Parent      string `json:"parent_task_id"`
}

func (t task) name() string { return fmt.Sprintf("%s:%d", t.Node, t.ID) }

// fills lists the copies into an index that are under way.
func (s *Sink) fills(ctx context.Context, into string) (names []string, err error) {
	var answer struct {
		Tasks []task `json:"tasks"`
	}
	err = s.slow(ctx, http.MethodGet, "/_tasks?actions=*data/write/reindex&detailed=true&group_by=none", nil, &answer)
	if err != nil {
		return nil, fmt.Errorf("list the engine's tasks: %w", err)
	}
	for _, t := range answer.Tasks {
		if t.Parent == "" && strings.Contains(t.Description, "to ["+into+"]") {
			names = append(names, t.name())
		}
	}
	return names, nil
}

// Fill has the engine copy: _reindex, which keeps versions, and leaves what is newer in the new
// index.
func (s *Sink) Fill(ctx context.Context, f sink.Fill) (sink.Filled, error) {
	going, err := s.fills(ctx, f.Into)
	if errors.Is(err, sink.ErrDenied) {
		err = fmt.Errorf("%w: %w", sink.ErrNoCopy, err)
	}
	if err != nil {
		return sink.Filled{}, err
	}
	name := f.Task
	switch {
	case len(going) > 0:
		name = going[0]
	case name != "":
		if done, known, err := s.filled(ctx, name); known || err != nil { // it ended while nobody looked
			return done, err
		}
		fallthrough
	default:
		if name, err = s.startFill(ctx, f); err != nil {
			return sink.Filled{}, err
		}
	}
	if f.Started != nil {
		if err := f.Started(name); err != nil {
			return sink.Filled{}, err
		}
	}
	tick := time.NewTicker(fillLook)
	defer tick.Stop()
	for {
		done, known, err := s.filled(ctx, name)
		if known || err != nil {
			return done, err
		}
		if going, err = s.fills(ctx, f.Into); err != nil {
			return sink.Filled{}, err
		}
		if !slices.Contains(going, name) {
			if done, known, err = s.filled(ctx, name); known || err != nil {
				return done, err
			}
			return sink.Filled{}, fmt.Errorf(
				"the engine has lost its copy (was it restarted?): resume, and it begins anew",
			)
		}
		var count struct {
			Count int64 `json:"count"`
		}
		if f.Progress != nil && s.slow(ctx, http.MethodGet, "/"+pathOf(f.Into)+"/_count", nil, &count) == nil {
			f.Progress(count.Count)
		}
		select {
		case <-ctx.Done():
			return sink.Filled{}, ctx.Err()
		case <-tick.C:
		}
	}
}

func (s *Sink) startFill(ctx context.Context, f sink.Fill) (string, error) {
	path := "/_reindex?wait_for_completion=false&slices=auto"
	if f.Rate > 0 {
		path += fmt.Sprintf("&requests_per_second=%g", f.Rate)
	}
	var answer struct {
		Task string `json:"task"`
	}
	err := s.slow(ctx, http.MethodPost, path, object{
		"conflicts": "proceed", "source": object{"index": f.From, "size": fillSize},
		"dest": object{"index": f.Into, "version_type": "external"},
	}, &answer)
	var refused *Error
	if errors.As(err, &refused) && (refused.Status == http.StatusBadRequest && refused.Class == "" ||
		refused.Status == http.StatusMethodNotAllowed || refused.Status == http.StatusForbidden) {
		return "", fmt.Errorf("%w: %w", sink.ErrNoCopy, err)
	}
	if err == nil && answer.Task == "" {
		err = s.client.Odd()
	}
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", f.From, err)
	}
	return answer.Task, nil
}

// filled is the result of a copy; not known while it is under way, or where the engine has lost it.
func (s *Sink) filled(ctx context.Context, name string) (done sink.Filled, known bool, err error) {
	var answer struct {
		Completed bool   `json:"completed"`
		Error     *fault `json:"error"`
		Response  struct {
			Failures []struct {
				ID     string `json:"id"`
				Status int    `json:"status"`
				Cause  fault  `json:"cause"`
				Reason fault  `json:"reason"` // of a search that failed
			} `json:"failures"`
			Canceled string `json:"canceled"`
		} `json:"response"`
	}
	err = s.slow(ctx, http.MethodGet, "/_tasks/"+url.PathEscape(name), nil, &answer)
	switch {
	case exchange.Status(err) == http.StatusNotFound:
		return done, false, nil
	case err != nil:
		return done, false, fmt.Errorf("look at the copy: %w", err)
	case !answer.Completed:
		return done, false, nil
	case answer.Error != nil:
		return done, true, fmt.Errorf("the engine's copy failed: %s", answer.Error.reason())
	case answer.Response.Canceled != "":
		return done, true, errors.New("the engine's copy was canceled: resume, and it begins anew")
	}
	for _, f := range answer.Response.Failures {
		o := s.itemOutcome(shard.Put, item{Status: f.Status, Error: raw(f.Cause)}, 0)
		if o.Kind != sink.Rejected && o.Kind != sink.Refused {
			if f.Cause.Type == "" {
				f.Cause = f.Reason
			}
			return done, true, fmt.Errorf(
				"the new index takes no documents now: HTTP %d %s",
				f.Status,
				f.Cause.reason(),
			)
		}
		done.Refused = append(done.Refused, sink.RefusedCopy{ID: f.ID, Reason: o.Reason})
	}
	return done, true, nil
}

func raw(f fault) json.RawMessage {
	text, _ := json.Marshal(f) // strings
	return text
}

// StopFill cancels copies into an index.
func (s *Sink) StopFill(ctx context.Context, into string) error {
	going, err := s.fills(ctx, into)
	if errors.Is(err, sink.ErrDenied) {
		return nil // then there is none of ours: see Fill
	}
	if err != nil {
		return err
	}
	for _, name := range going {
		err := s.slow(
			ctx,
			http.MethodPost,
			"/_tasks/"+url.PathEscape(name)+"/_cancel?wait_for_completion=true",
			nil,
			nil,
		)
		if err != nil {
			return fmt.Errorf("cancel the engine's copy: %w", err)
		}
	}
	return nil
}

// Walk scrolls through an index, without bodies.
func (s *Sink) Walk(ctx context.Context, index string, f func([]sink.Versioned) error) error {
	if err := s.slow(ctx, http.MethodPost, "/"+pathOf(index)+"/_refresh", nil, nil); err != nil {
		return fmt.Errorf("refresh %s: %w", index, err)
	}
	if err := s.scroll(ctx, index, object{"match_all": object{}}, f); err != nil {
		return fmt.Errorf("read the ids of %s: %w", index, err)
	}
	return nil
}

// scroll calls f for the documents that a query matches, without bodies, in no order.
func (s *Sink) scroll(ctx context.Context, index string, query object, f func([]sink.Versioned) error) error {
	type page struct {
		Scroll string `json:"_scroll_id"`
		Hits   struct {
			Hits []struct {
				ID      string `json:"_id"`
				Version int64  `json:"_version"`
			} `json:"hits"`
		} `json:"hits"`
		Shards struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
	}
	var p page
	err := s.slow(ctx, http.MethodPost, "/"+pathOf(index)+"/_search?ignore_unavailable=true&scroll="+walkAlive, object{
		"size": walkSize, "query": query, "sort": []string{"_doc"}, "version": true, "_source": false,
	}, &p)
	defer func() {
		if p.Scroll != "" {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exchange.DialTimeout)
			defer cancel()
			// Where it fails, the scroll runs out by itself.
			_ = s.client.Ask(ctx, http.MethodDelete, "/_search/scroll", object{"scroll_id": p.Scroll}, nil)
		}
	}()
	for {
		if err == nil && p.Shards.Failed > 0 {
			err = fmt.Errorf("%d shards gave no answer", p.Shards.Failed)
		}
		if err != nil {
			return err
		}
		if len(p.Hits.Hits) == 0 {
			return nil
		}
		docs := make([]sink.Versioned, len(p.Hits.Hits))
		for i, h := range p.Hits.Hits {
			docs[i] = sink.Versioned{ID: h.ID, Version: h.Version}
		}
		if err := f(docs); err != nil {
			return err
		}
		next := page{}
		err = s.slow(ctx, http.MethodPost, "/_search/scroll", object{"scroll": walkAlive, "scroll_id": p.Scroll}, &next)
		if next.Scroll == "" {
			next.Scroll = p.Scroll
		}
		p = next
	}
}

// get reads documents of one index, as they are now.
func (s *Sink) get(ctx context.Context, index string, ids []string, source bool) ([]copied, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	asked := make([]object, len(ids))
	for i, id := range ids {
		asked[i] = object{"_index": index, "_id": id}
	}
	ctx, cancel := context.WithTimeout(ctx, slowCall)
	defer cancel()
	docs, err := s.mget(ctx, asked, source)
	for i, d := range docs {
		switch {
		case d.Error != nil:
			err = errors.New(d.Error.reason())
		case d.ID != ids[i]:
			err = s.client.Odd()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read documents of %s: %w", index, err)
	}
	return docs, nil
}

// VersionsOf reads versions, refreshed or not.
func (s *Sink) VersionsOf(ctx context.Context, index string, ids []string) ([]int64, error) {
	docs, err := s.get(ctx, index, ids, false)
	if err != nil {
		return nil, err
	}
	out := make([]int64, len(ids))
	for i, d := range docs {
		if out[i] = d.Version; !d.Found {
			out[i] = -1
		}
	}
	return out, nil
}

// Transfer copies documents, with their versions.
func (s *Sink) Transfer(ctx context.Context, c shard.Collection, from, into string, ids []string) ([]sink.Outcome,
	error,
) {
	b, to := exchange.Batch{Outcomes: slices.Repeat([]sink.Outcome{exchange.Late}, len(ids))}, s.into(c, into)
	at := 0
	for part := range slices.Chunk(ids, transferSize) {
		docs, err := s.get(ctx, from, part, true)
		if err != nil {
			return nil, err
		}
		var entries []exchange.Entry
		for i, d := range docs {
			if !d.Found {
				b.Outcomes[at+i] = sink.Outcome{Kind: sink.Applied}
				continue
			}
			if len(d.Source) == 0 {
				return nil, fmt.Errorf("%s keeps no bodies of documents: it can only be filled from the source", from)
			}
			e := exchange.Entry{Op: versioned(c, shard.Put, d.ID, d.Version), Index: to.Index, Position: at + i}
			text := bytes.NewBuffer(actionLine(e.Op, e.Index, &e.Fence))
			if err := json.Compact(text, d.Source); err != nil { // it may be on several lines
				return nil, s.client.Odd()
			}
			e.Text = append(text.Bytes(), '\n')
			entries = append(entries, e)
		}
		call, cancel := context.WithTimeout(ctx, slowCall)
		to.push(call, &b, entries, nil)
		cancel()
		at += len(part)
	}
	return b.Outcomes, nil
}

// Erase deletes documents, with the versions given.
func (s *Sink) Erase(ctx context.Context, c shard.Collection, index string, docs []sink.Versioned) []sink.Outcome {
	ops := make([]sink.Op, len(docs))
	for i, d := range docs {
		ops[i] = versioned(c, shard.Delete, d.ID, d.Version)
	}
	ctx, cancel := context.WithTimeout(ctx, slowCall)
	defer cancel()
	return s.into(c, index).Write(ctx, ops)
}

// versioned is an op on a document with a version that an index has.
func versioned(c shard.Collection, kind shard.Operation, id string, version int64) sink.Op {
	return sink.Op{Doc: shard.DocID(string(c) + "#" + id), Kind: kind, Fence: shard.Fence(version)}
}

// aliases are the names of an index, each with what belongs to it.
func (s *Sink) aliases(ctx context.Context, index string) (map[string]object, error) {
	var has map[string]struct {
		Aliases map[string]object `json:"aliases"`
	}
	if err := s.slow(ctx, http.MethodGet, "/"+pathOf(index)+"/_alias", nil, &has); err != nil {
		return nil, fmt.Errorf("read the aliases of %s: %w", index, err)
	}
	return has[index].Aliases, nil
}

// Switch moves the names in one call.
func (s *Sink) Switch(ctx context.Context, c shard.Collection, from, into string) error {
	at, err := s.Standing(ctx, c)
	switch {
	case err != nil:
		return err
	case at.Index == into:
		return nil
	case at.Index != from:
		return fmt.Errorf("%s stands for %s now, not for %s: somebody has changed it", at.Name, at.Index, from)
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
	// Searches must find in the new index what they found in the old one a moment ago.
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
		err = errors.New("not every node of the cluster has said yes in time")
	}
	if err != nil {
		return fmt.Errorf("switch %s to %s: %w", at.Name, into, err)
	}
	s.targets.forget(at.Name)
	return nil
}

// Settle takes the private alias away.
func (s *Sink) Settle(ctx context.Context, index string) error {
	err := s.slow(ctx, http.MethodDelete, "/"+pathOf(index)+"/_alias/"+pathOf(index+intoSuffix), nil, nil)
	if err != nil && exchange.Status(err) != http.StatusNotFound {
		return fmt.Errorf("take the alias of the rebuild away: %w", err)
	}
	return nil
}

// Earlier lists what rebuilds have left.
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
			return nil // the index has gone, and its name stands for another one
		}
	}
	if err != nil && exchange.Status(err) != http.StatusNotFound {
		return fmt.Errorf("delete the index %s: %w", index, err)
	}
	return nil
}
