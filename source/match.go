package source

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Match is a rule that gives messages to a source. Everything that it names must hold; empty fields
// say nothing.
//
// Only Sink is a boundary: it is the queue of the message, and IAM says who may send there. A
// sender that may use a queue can also write the attribute and every envelope.
type Match struct {
	// Named requires the attribute lull-source with the source's name. Without Named, a message may
	// still name its own source, but no other.
	Named bool `json:"named"`
	// Sink is the sink whose queues hold the message.
	Sink string `json:"sink"`
	// Topic is the ARN of the SNS topic that delivered the message, with raw delivery off. For Kafka it
	// is the name of the topic that a pipe read.
	Topic string `json:"topic"`
	// Bus is the source of an EventBridge event, such as aws.s3, and DetailType its detail-type.
	Bus        string `json:"bus"`
	DetailType string `json:"detailType"`
	// Bucket is the bucket of a change in S3.
	Bucket string `json:"bucket"`
	// Stream is the ARN of the stream or broker from which a pipe read the message: a DynamoDB
	// stream, or its table; a Kinesis stream; a cluster of Amazon MSK; a broker of Amazon MQ.
	Stream string `json:"stream"`
	// Queue is the queue of a broker of Amazon MQ that a pipe read the message from.
	Queue string `json:"queue"`
}

// weight orders rules. The queue of a message counts most, then its envelopes, then its attribute.
// Among rules about envelopes, the rule that names more fields counts more.
func (m Match) weight() int {
	w := 2 * m.envelopes()
	if m.Sink != "" {
		w += 16
	}
	if m.Named {
		w++
	}
	return w
}

// Empty reports whether the rule requires nothing, and so would take every message.
func (m Match) Empty() bool { return m == Match{} }

// envelopes is how many things the rule asks of a message's envelopes.
func (m Match) envelopes() (n int) {
	for _, asked := range []string{m.Topic, m.Bus, m.DetailType, m.Bucket, m.Stream, m.Queue} {
		if asked != "" {
			n++
		}
	}
	return n
}

// reads reports whether the rule's stream is the one that a pipe read. A table's stream gets
// another ARN after it was switched off and on, so the table's ARN matches, too. For a record that
// a stream's consumer read, the stream's ARN matches. AWS does not document which of the two ARNs
// its records name.
func (m Match) reads(stream string) bool {
	return m.Stream == stream || strings.HasPrefix(stream, m.Stream+"/stream/") ||
		strings.HasPrefix(stream, m.Stream+"/consumer/")
}

// bound is a rule with its source.
type bound struct {
	Match
	source string
	index  int // among the rules of the source
}

// Need is one requirement of a rule, and the message's value for it. Want is empty if the rule has
// no such requirement.
type Need struct {
	Field string `json:"field"`
	Want  string `json:"want"`
	Has   string `json:"has,omitempty"`
	Met   bool   `json:"-"`
}

// needs are the requirements of the rule.
func (b bound) needs(named, sink string, o event.Origin) [8]Need {
	asks := ""
	if b.Named {
		asks = b.source
	}
	all := [...]Need{
		{Field: "named", Want: asks, Has: named},
		{Field: "sink", Want: b.Sink, Has: sink},
		{Field: "topic", Want: b.Topic, Has: o.Topic},
		{Field: "bus", Want: b.Bus, Has: o.Bus},
		{Field: "detailType", Want: b.DetailType, Has: o.DetailType},
		{Field: "bucket", Want: b.Bucket, Has: o.Bucket},
		{Field: "stream", Want: b.Stream, Has: o.Stream},
		{Field: "queue", Want: b.Queue, Has: o.Queue},
	}
	for i := range all {
		n := &all[i]
		n.Met = n.Want == "" || n.Want == n.Has || n.Field == "stream" && b.reads(n.Has)
	}
	return all
}

// Choice says why the settings give a message to a source.
type Choice struct {
	// Source decodes the message; empty where none does.
	Source string
	// Rule is the path of the rule that holds, such as sources.pages.match[0], or defaultSource.
	Rule string
	// Origin is what the envelopes of the message say.
	Origin event.Origin
	// Missed are the rules that were tried before, by path, each with the requirements that the
	// message does not meet.
	Missed []Miss
	// Invalid is why the message is refused before it is decoded, or nil.
	Invalid *event.Invalid
}

// Miss is a rule that does not hold for a message.
type Miss struct {
	Rule  string `json:"rule"`
	Needs []Need `json:"needs"` // at least one
}

// Explain says which source decodes a message, and which rule chooses it.
func (s *Set) Explain(m event.Message) Choice {
	var c Choice
	if len(m.Body) <= event.MaxBodyBytes {
		c.Origin = event.OriginOf(m.Body, s.depth)
	}
	named := m.Attributes[queue.AttrSource].String
	for _, r := range s.rules {
		path := fmt.Sprintf("sources.%s.match[%d]", r.source, r.index)
		needs := r.needs(named, s.sink, c.Origin)
		missed := slices.DeleteFunc(needs[:], func(n Need) bool { return n.Met })
		if len(missed) == 0 {
			c.Rule = path
			break
		}
		c.Missed = append(c.Missed, Miss{path, missed})
	}
	if c.Rule == "" && s.fallback != "" {
		c.Rule = "defaultSource"
	}
	src, bad := s.choose(m)
	if c.Invalid = bad; bad == nil {
		c.Source = src.rules.Name
	}
	return c
}

// bind sorts the rules of all sources: the first that holds chooses the source.
func bind(sources map[string]Settings) (rules []bound, opens bool) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		for i, m := range sources[name].Match {
			rules = append(rules, bound{m, name, i})
			opens = opens || m.envelopes() > 0
		}
	}
	slices.SortStableFunc(rules, func(a, b bound) int { return cmp.Compare(b.weight(), a.weight()) })
	return rules, opens
}

// At returns the set for the messages in the queues of one sink. If a collection has several sinks,
// its events name the rows of this sink.
func (s *Set) At(sink string) *Set {
	at := *s
	at.sink = sink
	return &at
}

// BySink reports whether a rule depends on the sink whose queues hold a message.
func (s *Set) BySink() bool {
	return slices.ContainsFunc(s.rules, func(b bound) bool { return b.Sink != "" })
}

// choose finds the source of a message: the source of the first rule that matches, otherwise the
// default. A message that names another source is refused, because decoding it as something else
// would be a guess.
func (s *Set) choose(m event.Message) (*source, *event.Invalid) {
	attribute, named := m.Attributes[queue.AttrSource]
	name, sink := s.match(m, attribute.String)
	if _, line := queue.LineOf(m.Attributes); line && s.takesLines(attribute.String, sink) {
		return s.sources[attribute.String], nil // lull made this line from an object, for this source
	}
	switch {
	case named && s.sources[attribute.String] == nil:
		return nil, Invalid(queue.AttrSource, "%s is not a source: use one of %s", event.Quote(attribute.String),
			s.names)
	case named && name != attribute.String:
		return nil, Invalid(queue.AttrSource,
			"the message may not name source %s: add the rule named: true to sources.%s.match, or remove the attribute",
			attribute.String, attribute.String)
	case name == "":
		return nil, Invalid(queue.AttrSource,
			"no rule in sources.<name>.match matches the message, and defaultSource is not set: the sources are %s",
			s.names)
	}
	return s.sources[name], nil
}

// takesLines reports whether a source decodes lines of objects in these queues. If the rule that
// holds for the message names the sink, the source or that of its objects needs such a rule too.
func (s *Set) takesLines(name, sink string) bool {
	readers := s.lines[name]
	if len(readers) == 0 || s.sources[name] == nil {
		return false
	}
	return sink == "" || slices.ContainsFunc(s.rules, func(b bound) bool {
		return b.Sink == sink && (b.source == name || slices.Contains(readers, b.source))
	})
}

// seen is a body and what its envelopes say.
type seen struct {
	body string
	event.Origin
}

// origin remembers the last body, because lull asks for the source of a message once for each of
// its documents. A message of a megabyte may hold hundreds of documents.
func (s *Set) origin(body string) event.Origin {
	o := s.last.Load()
	if o == nil || o.body != body {
		o = &seen{body, event.OriginOf(body, s.depth)}
		s.last.Store(o)
	}
	return o.Origin
}

// SourceOf names the source that decodes a message; empty where none does.
func (s *Set) SourceOf(m event.Message) string {
	src, bad := s.choose(m)
	if bad != nil {
		return ""
	}
	return src.rules.Name
}

// match is the name of the source that the settings give a message to, and the sink that the rule
// for that names, if any.
func (s *Set) match(m event.Message, named string) (name, sink string) {
	var origin event.Origin
	if s.opens && len(m.Body) <= event.MaxBodyBytes {
		origin = s.origin(m.Body)
	}
	for _, r := range s.rules {
		needs := r.needs(named, s.sink, origin)
		if !slices.ContainsFunc(needs[:], func(n Need) bool { return !n.Met }) {
			return r.source, r.Sink
		}
	}
	return s.fallback, ""
}
