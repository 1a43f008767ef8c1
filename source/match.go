// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/queue"
)

// Match is a rule that gives messages to a source. A message must meet every field of the rule that
// is not empty.
//
// Only Sink is a security boundary: it names the queue of the message, and IAM decides who may send
// to that queue. A sender that may use the queue can write any attribute and any envelope.
type Match struct {
	// Named requires that the attribute lull-source has the source's name. Without Named, a message
	// may also have the attribute, but only with the name of the source that the rules choose.
	Named bool `json:"named"`
	// Sink is the name of the sink in whose queues the message is.
	Sink string `json:"sink"`
	// Topic is the ARN of the SNS topic that delivered the message, with raw delivery off. For
	// Kafka, Topic is the name of the topic that a pipe read.
	Topic string `json:"topic"`
	// Bus is the source of an EventBridge event, such as aws.s3. DetailType is the event's
	// detail-type.
	Bus        string `json:"bus"`
	DetailType string `json:"detailType"`
	// Bucket is the bucket of the object whose change in S3 the message reports.
	Bucket string `json:"bucket"`
	// Stream is the ARN of the stream or broker from which a pipe read the message: a DynamoDB
	// stream, or its table; a Kinesis stream; a cluster of Amazon MSK; a broker of Amazon MQ.
	Stream string `json:"stream"`
	// Queue is the queue of an Amazon MQ broker from which a pipe read the message.
	Queue string `json:"queue"`
}

// weight returns the priority of a rule. A rule about the queue of a message has the highest
// priority, then a rule about envelopes, then a rule about the attribute. Of two rules about
// envelopes, the rule with more fields has priority.
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

// Empty reports whether the rule has no requirement, so that it would match every message.
func (m Match) Empty() bool { return m == Match{} }

// envelopes returns how many requirements the rule has for a message's envelopes.
func (m Match) envelopes() (n int) {
	for _, asked := range []string{m.Topic, m.Bus, m.DetailType, m.Bucket, m.Stream, m.Queue} {
		if asked != "" {
			n++
		}
	}
	return n
}

// reads reports whether the rule's stream is the stream that a pipe read. The ARN of a table's
// stream changes if the stream is switched off and on, so the ARN of the table also matches. If
// a consumer of a stream read the record, the ARN of the stream matches too. AWS does not document
// whether such a record names the stream or the consumer.
func (m Match) reads(stream string) bool {
	return m.Stream == stream || strings.HasPrefix(stream, m.Stream+"/stream/") ||
		strings.HasPrefix(stream, m.Stream+"/consumer/")
}

// sourceRule is a rule together with the name of its source.
type sourceRule struct {
	Match
	source string
	index  int // the position of the rule in the list of the source
}

// Need is one requirement of a rule, and the message's value for it. Want is empty if the rule has
// no such requirement.
type Need struct {
	Field string `json:"field"`
	Want  string `json:"want"`
	Has   string `json:"has,omitempty"`
	Met   bool   `json:"-"`
}

// needs returns all possible requirements of a rule, and for each whether a message meets it.
func (b sourceRule) needs(named, sink string, o event.Origin) [8]Need {
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
	// Source is the name of the source that decodes the message. It is empty if no source does.
	Source string
	// Rule is the path of the rule that the message meets, such as sources.pages.match[0], or
	// defaultSource.
	Rule string
	// Origin is where the message comes from, according to its envelopes.
	Origin event.Origin
	// Missed lists the rules that were tried before, each with the requirements that the message
	// does not meet.
	Missed []Miss
	// Invalid says why the message is refused before it is decoded. It is nil if it is not refused.
	Invalid *event.Invalid
}

// Miss is a rule whose requirements a message does not meet.
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

// sortRules returns the rules of all sources in the order in which they are tried. The first rule
// that a message meets chooses the source.
func sortRules(sources map[string]Settings) (rules []sourceRule, opens bool) {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		for i, m := range sources[name].Match {
			rules = append(rules, sourceRule{m, name, i})
			opens = opens || m.envelopes() > 0
		}
	}
	// Every function decodes messages, and slices.SortStableFunc of such large values adds 5 KB to it.
	sort.SliceStable(rules, func(i, j int) bool { return rules[i].weight() > rules[j].weight() })
	return rules, opens
}

// At returns the set that decodes the messages in the queues of one sink. If a collection has
// several sinks, the events name the document's row of this sink.
func (s *Set) At(sink string) *Set {
	at := *s
	at.sink = sink
	return &at
}

// BySink reports whether a rule depends on the sink whose queues hold a message.
func (s *Set) BySink() bool {
	return slices.ContainsFunc(s.rules, func(b sourceRule) bool { return b.Sink != "" })
}

// choose finds the source of a message: the source of the first rule that matches, otherwise the
// default source. A message whose attribute names another source is refused, because the rules and
// the sender contradict each other.
func (s *Set) choose(m event.Message) (*source, *event.Invalid) {
	attribute, named := m.Attributes[queue.AttrSource]
	name, sink := s.match(m, attribute.String)
	if _, line := queue.LineOf(m.Attributes); line && s.takesLines(attribute.String, sink) {
		return s.sources[attribute.String], nil // lull made this message from a line of an object, for this source
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

// takesLines reports whether a source decodes lines of objects in the queues of a sink. The sink is
// the one that the matching rule names, or "". With a sink, the source needs a rule for the same
// sink, or the source whose messages name the objects needs one.
func (s *Set) takesLines(name, sink string) bool {
	readers := s.lines[name]
	if len(readers) == 0 || s.sources[name] == nil {
		return false
	}
	return sink == "" || slices.ContainsFunc(s.rules, func(b sourceRule) bool {
		return b.Sink == sink && (b.source == name || slices.Contains(readers, b.source))
	})
}

// seenBody is a body, and the origin that its envelopes name.
type seenBody struct {
	body string
	event.Origin
}

// origin returns the origin of a body, and remembers the last body. lull asks for the source of a
// message once for each document, and a message of a megabyte may contain hundreds of documents.
func (s *Set) origin(body string) event.Origin {
	o := s.last.Load()
	if o == nil || o.body != body {
		o = &seenBody{body, event.OriginOf(body, s.depth)}
		s.last.Store(o)
	}
	return o.Origin
}

// SourceOf returns the name of the source that decodes a message, or "" if no source does.
func (s *Set) SourceOf(m event.Message) string {
	src, bad := s.choose(m)
	if bad != nil {
		return ""
	}
	return src.rules.Name
}

// match returns the name of the source that the rules choose for a message. It also returns the
// sink that the matching rule names, or "".
func (s *Set) match(m event.Message, named string) (name, sink string) {
	var origin event.Origin
	if s.readsEnvelopes && len(m.Body) <= event.MaxBodyBytes {
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
