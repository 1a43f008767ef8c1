package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Set is every configured source. It is safe for concurrent use.
type Set struct {
	sources  map[string]format
	fallback string // the source of a message that names none
	names    string // for faults
	depth    int
	load     Loader
}

// Loader fetches an object from S3: the body of a message that only carries a pointer. It bounds
// the size before it reads. An error that is an *event.Fault is for good; any other may pass, and
// the fault that it becomes is Transient.
type Loader func(ctx context.Context, bucket, key string) ([]byte, error)

// format is one upstream's format with the settings of one source.
type format interface {
	// decode makes the event of one body. origin says when the message was sent.
	decode(o origin, b event.Body) event.Result
	// document makes the document of a payload.
	document(data string) ([]byte, *event.Fault)
	// common gives the settings that every source has.
	common() *rules
}

// New builds every configured source. Settings that are left empty have the defaults of package
// config; cfg is not changed and not kept. An error names every source that cannot be built.
func New(cfg *config.Config) (*Set, error) {
	c := *cfg
	c.Sources, c.Sinks = maps.Clone(cfg.Sources), maps.Clone(cfg.Sinks)
	c.Complete()
	s := &Set{
		sources: make(map[string]format, len(c.Sources)), fallback: c.DefaultSource,
		depth: c.Payload.EnvelopeDepth,
	}
	names := slices.Sorted(maps.Keys(c.Sources))
	s.names = strings.Join(names, ", ")
	var errs []error
	for _, name := range names {
		f, err := newFormat(&c, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("build source %s: %w", name, err))
			continue
		}
		s.sources[name] = f
	}
	if _, ok := c.Sources[s.fallback]; !ok && s.fallback != "" {
		errs = append(errs, fmt.Errorf("defaultSource %s is no source: want one of %s", event.Quote(s.fallback),
			s.names))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return s, nil
}

func newFormat(c *config.Config, name string) (format, error) {
	r, err := newRules(c, name)
	if err != nil {
		return nil, err
	}
	settings := c.Sources[name]
	switch settings.Kind {
	case config.SourceNative:
		return &native{r}, nil
	case config.SourceGovuk:
		return newGovuk(r, settings.Govuk), nil
	case config.SourceS3:
		return &objects{r, settings.S3.StripPrefix, settings.S3.StripSuffix}, nil
	case config.SourceDynamoDBStream:
		return &stream{r}, nil
	case config.SourceDebezium:
		return newDebezium(r, settings.Debezium)
	case config.SourceJSON:
		return newPointed(r, settings.JSON)
	}
	return nil, fmt.Errorf("kind %s is unknown: want native, govuk, s3, dynamodb-stream, debezium or json",
		event.Quote(string(settings.Kind)))
}

// WithLoader returns a set that also decodes messages whose body is a pointer to an object in S3,
// where payload.allow lists its place.
func (s *Set) WithLoader(load Loader) *Set {
	with := *s
	with.load = load
	return &with
}

// Decode makes the events of a message. The answer is never empty; an undecodable message is one
// fault at index 0.
func (s *Set) Decode(m queue.Message) []event.Result {
	return s.DecodeContext(context.Background(), m)
}

// DecodeContext is Decode with a context for the Loader.
func (s *Set) DecodeContext(ctx context.Context, m queue.Message) []event.Result {
	f, fault := s.choose(m)
	if fault == nil && len(m.Body) > queue.MaxBytes {
		fault = &event.Fault{
			Reason: deadletter.Undecodable,
			Problem: fmt.Sprintf("the body has %d bytes, at most %d are allowed: send a large payload by dataref",
				len(m.Body), queue.MaxBytes),
		}
	}
	if fault != nil {
		return []event.Result{{Fault: fault}}
	}
	unwrapper := event.Unwrapper{Depth: s.depth}
	if s.load != nil {
		unwrapper.Load = func(p event.Pointer) (string, *event.Fault) { return s.body(ctx, f.common(), p) }
	}
	var room [1]event.Body
	bodies := unwrapper.Unwrap(room[:0], m.Body, event.MetaOf(m.Attributes))
	results := make([]event.Result, len(bodies))
	o := origin{sent: m.FirstSent()}
	for i := range bodies {
		switch b := &bodies[i]; {
		case b.Fault != nil:
			results[i].Fault = b.Fault
		case b.Skip != "":
			results[i].Skip = b.Skip
		default:
			results[i] = f.decode(o, *b)
		}
		results[i].Event.Index = i
		if results[i].Fault != nil {
			results[i].Fault.Index = i
		}
	}
	return results
}

// Document makes the JSON object to write for a put: the projection of e.Data, which was loaded
// before where the event has a DataRef, without _lull, which belongs to the sinks. An error is an
// *event.Fault where trying again is no use, and no other errors are known.
func (s *Set) Document(m queue.Message, e event.Event) ([]byte, error) {
	f, fault := s.choose(m)
	if fault != nil {
		return nil, fault
	}
	doc, fault := s.documentOf(f, e)
	if fault != nil {
		fault.Index, fault.Doc, fault.Key = e.Index, e.Doc, e.Key
		return nil, fault
	}
	return doc, nil
}

func (s *Set) documentOf(f format, e event.Event) ([]byte, *event.Fault) {
	if e.Op == shard.Delete {
		return nil, &event.Fault{Reason: deadletter.Contract, Field: "data", Problem: "a delete has no document"}
	}
	if e.DataRef != "" { // what was loaded is the first thing here that nobody has checked
		if bad := event.Check(e.Data); bad != nil {
			return nil, &event.Fault{
				Reason: deadletter.Payload, Field: "dataref",
				Problem: "what it names is no document: " + bad.Problem,
			}
		}
	}
	doc, fault := f.document(e.Data)
	if fault != nil && e.DataRef != "" {
		fault.Reason, fault.Field = deadletter.Payload, "dataref"
	}
	return doc, fault
}

// choose finds the source of a message.
func (s *Set) choose(m queue.Message) (format, *event.Fault) {
	name := s.fallback
	if a, ok := m.Attributes[queue.AttrSource]; ok {
		name = a.String
	}
	if f, ok := s.sources[name]; ok {
		return f, nil
	}
	problem := fmt.Sprintf("%s is no source: want one of %s", event.Quote(name), s.names)
	if name == "" {
		problem = fmt.Sprintf("the message names no source and there is no defaultSource: want one of %s", s.names)
	}
	return nil, &event.Fault{Reason: deadletter.Contract, Field: queue.AttrSource, Problem: problem}
}

// body fetches what a pointer names, if the source may refer to it.
func (s *Set) body(ctx context.Context, r *rules, p event.Pointer) (string, *event.Fault) {
	if f := r.allowed("s3BucketName", p.Bucket, p.Key); f != nil {
		return "", f
	}
	text, err := s.load(ctx, p.Bucket, p.Key)
	if err == nil {
		return string(text), nil
	}
	var fault *event.Fault
	if errors.As(err, &fault) {
		return "", fault
	}
	return "", &event.Fault{
		Reason: deadletter.Payload, Field: "s3Key", Problem: "the body that the pointer names cannot be loaded now",
		Err: err,
	}
}
