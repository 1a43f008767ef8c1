// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Set is all configured sources. It is safe for concurrent use.
type Set struct {
	sources        map[string]*source
	rules          []sourceRule // the rules of all sources, in the order in which they are tried
	readsEnvelopes bool         // a rule needs the origin that the envelopes name
	sink           string       // the sink in whose queues the messages are; see At
	added          map[string][]string
	fallback       string // the source of a message that no rule matches
	names          string // the names of all sources, for problems
	depth          int
	load           Loader
	// for each source that decodes lines: the sources whose messages name the objects
	lines  map[string][]string
	loaded *sync.Mutex // locked while a loaded body is decoded
	last   *atomic.Pointer[seenBody]
}

// source is one configured source.
type source struct {
	rules *Rules
	Format
}

// Config is what a Set is built from.
type Config struct {
	// Sources are the settings of the sources, by name. They must be complete: class and collection
	// are set, and Options has the type of the kind's options.
	Sources map[string]Settings
	// Default names the source of a message that no rule matches. If it is empty, such a message is
	// invalid.
	Default string
	// Added lists, for each sink, the collections for which the sink is not the first sink.
	Added map[string][]string
	// EnvelopeDepth is how many envelopes are unwrapped.
	EnvelopeDepth int
	// Places returns the places in S3 to which the events of a source may refer. Hosts are the
	// hosts to which events may refer by https.
	Places func(source string) []Place
	Hosts  []string
	// Unlinked allows sources of kinds that this program does not link: their messages are invalid.
	// Otherwise New refuses them.
	Unlinked bool
}

// New builds all sources of the settings, whose type is internal to lull. An error names every
// source that cannot be built.
func New(settings interface{ SourceConfig() Config }) (*Set, error) {
	c := settings.SourceConfig()
	names := slices.Sorted(maps.Keys(c.Sources))
	s := &Set{
		sources: make(map[string]*source, len(names)), fallback: c.Default, depth: c.EnvelopeDepth,
		names: strings.Join(names, ", "), last: new(atomic.Pointer[seenBody]), added: c.Added,
		lines: make(map[string][]string),
	}
	s.rules, s.readsEnvelopes = sortRules(c.Sources)
	var errs []error
	for _, name := range names {
		built, err := build(c, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("build source %s: %w", name, err))
		}
		s.sources[name] = built
		if lines := c.Sources[name].Lines(); lines != "" {
			s.lines[lines] = append(s.lines[lines], name)
		}
	}
	if _, ok := c.Sources[c.Default]; !ok && c.Default != "" {
		errs = append(errs, fmt.Errorf("defaultSource %s is not a source: use one of %s", event.Quote(c.Default),
			s.names))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return s, nil
}

func build(c Config, name string) (*source, error) {
	kind, ok := Lookup(c.Sources[name].Kind)
	if !ok {
		err := fmt.Errorf("kind %s is unknown: use one of %s, or import the package of the kind",
			event.Quote(c.Sources[name].Kind), strings.Join(Kinds(), ", "))
		if c.Unlinked {
			return &source{&Rules{Name: name, Settings: c.Sources[name]}, unlinked{err}}, nil
		}
		return nil, err
	}
	rules, err := newRules(c, name)
	if err != nil {
		return nil, err
	}
	format, err := kind.New(rules)
	return &source{rules, format}, err
}

// unlinked is the format of a source whose kind this program does not link.
type unlinked struct{ err error }

func (u unlinked) Decode(event.Body) (d Draft, bad *event.Invalid) {
	return d, Invalid("kind", "%s", u.err)
}

func (u unlinked) Document(string) ([]byte, *event.Invalid) { return nil, Invalid("kind", "%s", u.err) }

// Decode returns the events of a message. The result is never empty: for a message that cannot be
// decoded, it is one Invalid at index 0.
func (s *Set) Decode(m event.Message) []event.Result {
	return s.DecodeContext(context.Background(), m)
}

// DecodeContext is Decode with a context for the Loader.
func (s *Set) DecodeContext(ctx context.Context, m event.Message) []event.Result {
	src, bad := s.choose(m)
	if bad == nil && len(m.Body) > event.MaxBodyBytes {
		bad = &event.Invalid{
			Reason: event.Undecodable,
			Problem: fmt.Sprintf("the body has %d bytes, at most %d are allowed: send a large payload by dataref",
				len(m.Body), event.MaxBodyBytes),
		}
	}
	if bad != nil {
		return []event.Result{{Invalid: bad}}
	}
	unwrapper := event.Unwrapper{Depth: s.depth}
	if s.load != nil {
		d := decoding{set: s}
		defer d.end()
		unwrapper.Load = func(p event.Pointer) (string, *event.Invalid) { return d.body(ctx, src.rules, p) }
	}
	var room [1]event.Body
	bodies := unwrapper.Unwrap(room[:0], m.Body, event.MetaOf(m.Attributes))
	results := make([]event.Result, len(bodies))
	only, one := queue.OnlyEvent(m.Attributes, len(bodies))
	for i := range bodies {
		r := &results[i]
		switch b := &bodies[i]; {
		case one && i != only:
			r.Skip = "another copy of the message is for this event"
		case b.Invalid != nil:
			r.Invalid = b.Invalid
		case b.Skip != "":
			r.Skip = b.Skip
		default:
			d, bad := src.Decode(*b)
			if bad == nil && d.Object != nil {
				r.Object, d.Skip, bad = d.Object, event.ManyDocuments, src.rules.checkObject(&m, &d)
			}
			if bad == nil && d.Skip == "" {
				d.position = b.Position
				r.Event, bad = src.rules.finish(&m, &d)
			}
			r.Skip, r.Invalid = d.Skip, bad
			if bad != nil {
				r.Skip, r.Object, bad.Doc = "", nil, s.row(d.Doc)
			}
			r.Event.Doc = s.row(r.Event.Doc)
		}
		r.Event.Index = i
		if r.Invalid != nil {
			r.Invalid.Index = i
		}
	}
	return results
}

// row returns the key of a document's row for the sink in whose queues the messages are. Only this
// function decides which row the events of a queue change (ADR 0049).
func (s *Set) row(doc event.DocID) event.DocID {
	if slices.Contains(s.added[s.sink], string(doc.Collection())) {
		return doc.In(s.sink)
	}
	return doc
}

// SelectsNothing reports whether the projection of the source selects nothing of a put's content.
// lull then writes an empty document.
func (s *Set) SelectsNothing(m event.Message, e event.Event) bool {
	src, bad := s.choose(m)
	if bad != nil || e.Op != event.Put || e.DataRef != "" || len(src.rules.Settings.Projection) == 0 {
		return false
	}
	doc, bad := src.document(e)
	return bad == nil && string(doc) == "{}"
}

// Document makes the JSON object to write for a put: the projection of e.Data. If the event has a
// DataRef, the caller has loaded e.Data before. The result never has the key _lull, which only
// sinks may write. An error is an *event.Invalid, and a retry would return the same error.
func (s *Set) Document(m event.Message, e event.Event) ([]byte, error) {
	src, bad := s.choose(m)
	if bad != nil {
		return nil, bad
	}
	doc, bad := src.document(e)
	if bad != nil {
		bad.Index, bad.Doc, bad.Key = e.Index, e.Doc, e.Key
		return nil, bad
	}
	return doc, nil
}

func (s *source) document(e event.Event) ([]byte, *event.Invalid) {
	if e.Op == event.Delete {
		return nil, Invalid("data", "a delete has no document")
	}
	if e.Fetch != "" {
		return s.rules.fetchedDocument(e)
	}
	if e.DataRef != "" { // no earlier step has checked the loaded content
		if bad := event.Check(e.Data); bad != nil {
			bad.Reason, bad.Field = event.Payload, "dataref"
			bad.Problem = "the content that it names is not a document: " + bad.Problem
			return nil, bad
		}
	}
	doc, bad := s.Document(e.Data)
	if bad != nil && e.DataRef != "" {
		bad.Reason, bad.Field = event.Payload, "dataref"
	}
	return doc, bad
}
