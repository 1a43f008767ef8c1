// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// sourceRules check the settings of sources.
var sourceRules = []Rule{
	{
		"source-kind",
		"The options of a kind fit the source's other settings.",
		each((*Config).linkedSources, checkSourceKind),
	},
	{
		"source-class",
		"A kind whose messages all have versions of one class has that class.",
		each((*Config).linkedSources, checkSourceClass),
	},
	{
		"source-arrival",
		"The time of arrival is a version of the class time, and a position in a stream has the class int or lex. " +
			"They do not fit a kind whose messages all have versions.", each((*Config).linkedSources, checkSourceArrival),
	},
	{
		"source-max-version",
		"The greatest version has the source's class.",
		each((*Config).linkedSources, checkSourceMaxVersion),
	},
	{
		"source-collections", "If a source lists collections, its events that name no collection go to one of them.",
		each((*Config).namedSources, checkSourceCollections),
	},
	{
		"source-match", "A rule that gives messages to a source is not empty, and no other rule is equal to it.",
		checkSourceMatch,
	},
	{
		"source-reach", "If there are several sources, each except the default one has a rule that gives it messages.",
		checkSourceReach,
	},
	{
		"source-lines",
		"The source of an object's lines exists, and its messages do not name objects of lines.",
		each((*Config).linkedSources, checkSourceLines),
	},
	{
		"source-projection", "A kind that decides itself what becomes the document has no projection, unless it is fetched.",
		each((*Config).linkedSources, checkSourceProjection),
	},
	{
		"fetch",
		"A fetch has an address with {id} whose host is fixed, and a version that can be compared with the " +
			"event's.", each((*Config).linkedSources, checkFetch),
	},
	{
		"fetch-time",
		"fetch.timeout + enrich.timeout + the sink deadline + 2s < Ti: a claimed document can be loaded, written and " +
			"committed.",
		each((*Config).linkedSources, checkFetchTime),
	},
}

// namedSource is a source with its name and the path of its setting. It also has the description of
// its kind, if this program links the kind.
type namedSource struct {
	Source
	name, path string
	kind       source.Kind
	linked     bool
}

// namedSources returns every source, by name.
func (c *Config) namedSources() []namedSource {
	var all []namedSource
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		kind, linked := source.Lookup(c.Sources[name].Kind)
		all = append(all, namedSource{c.Sources[name], name, "sources." + printable(name), kind, linked})
	}
	return all
}

// linkedSources returns the sources whose kind is registered in this program.
func (c *Config) linkedSources() []namedSource {
	return slices.DeleteFunc(c.namedSources(), func(s namedSource) bool { return !s.linked })
}

func checkSourceKind(_ *Config, f *checker, s namedSource) {
	checkOptions(f, s.path, s.Source, s.Options, s.kind.Kind, s.kind.Check)
}

func checkSourceClass(_ *Config, f *checker, s namedSource) {
	if s.kind.Versioned && s.Class != s.kind.Class {
		f.fault(s.path+".class", string(s.Class), "is not the class of the versions that the kind "+s.Kind+" has",
			"remove it, or write "+string(s.kind.Class))
	}
}

func checkSourceArrival(_ *Config, f *checker, s namedSource) {
	switch {
	case s.NoVersion == NoVersionRefuse:
	case s.kind.Versioned:
		f.fault(s.path+".noVersion", string(s.NoVersion), "does not fit the kind "+s.Kind+
			", whose messages have versions of the class "+string(s.kind.Class), "write refuse")
	case s.NoVersion == NoVersionPosition && s.Class != ClassInt && s.Class != ClassLex:
		f.fault(s.path+".class", string(s.Class), "does not fit noVersion: position",
			"write "+s.path+".class: int for Kafka's offsets, lex for Kinesis's sequence numbers, or "+s.path+
				".noVersion: refuse")
	case s.NoVersion == NoVersionArrival && s.Class != ClassTime:
		f.fault(s.path+".class", string(s.Class), "does not fit noVersion: arrival, whose versions are times",
			"write "+s.path+".class: time, or "+s.path+".noVersion: refuse")
	}
}

func checkSourceLines(c *Config, f *checker, s namedSource) {
	name := s.Lines()
	of, exists := c.Sources[name]
	s.path += "." + s.Kind + ".lines"
	switch {
	case name == "":
	case !exists:
		f.fault(s.path, name, "is not a source", "write the name of one under sources, or add it there")
	case of.Lines() != "":
		f.fault(s.path, name, "is a source whose messages name objects of many lines",
			"name the source that decodes one line")
	case s.Fetch != nil:
		f.fault(s.path, name, "cannot be used together with fetch: the lines are messages of the other source",
			"move fetch to sources."+printable(name))
	}
}

func checkSourceProjection(_ *Config, f *checker, s namedSource) {
	if len(s.Projection) > 0 && s.kind.OwnDocument && s.Fetch == nil {
		f.fault(s.path+".projection", nil, "has no effect: the kind "+s.Kind+
			" decides itself what becomes the document", "remove it")
	}
}

func checkSourceMaxVersion(_ *Config, f *checker, s namedSource) {
	class, err := shard.ParseClass(string(s.Class))
	if s.MaxVersion == "" || err != nil { // the rule "bounds" reports an unknown class
		return
	}
	if _, err := shard.ParseVersion(class, s.MaxVersion); err != nil {
		f.fault(s.path+".maxVersion", s.MaxVersion, "is not a version of the class "+string(s.Class),
			"write a version in the upstream's form, in quotes, or remove it")
	}
}

func checkSourceCollections(c *Config, f *checker, s namedSource) {
	list, to := s.Collections, c.CollectionFor(s.name)
	if len(list) > 0 && to != "" && !slices.Contains(list, to) {
		f.fault(s.path+".collections", strings.Join(list, ", "),
			"does not list "+to+", which gets the source's events that name no collection",
			"set "+s.path+".collection to one of the list, or add "+to)
	}
}

func checkSourceMatch(c *Config, f *checker) {
	first := make(map[source.Match]string)
	for _, s := range c.namedSources() {
		for i, m := range s.Match {
			path := fmt.Sprintf("%s.match[%d]", s.path, i)
			if m.Empty() {
				f.fault(path, nil, "is empty, so it would match every message",
					"remove it and set defaultSource, or name a sink, topic, bus, detailType, bucket, stream or queue, "+
						"or named: true")
				continue
			}
			said := m // two rules with Named differ, because each accepts only the name of its own source
			if m.Named {
				said.Topic += "\x00" + s.name
			}
			if other, taken := first[said]; taken {
				f.fault(path, nil, "is equal to "+other, "keep one of the two")
				continue
			}
			first[said] = path
		}
	}
}

func checkSourceReach(c *Config, f *checker) {
	if _, exists := c.Sources[c.DefaultSource]; !exists || len(c.linkedSources()) < len(c.Sources) {
		return // the rule "default" reports a missing default; an unlinked kind may name other sources
	}
	lines := make(map[string]bool)
	for _, s := range c.Sources {
		lines[s.Lines()] = true
	}
	for _, s := range c.namedSources() {
		if len(c.Sources) > 1 && s.name != c.DefaultSource && len(s.Match) == 0 && !lines[s.name] {
			f.fault(s.path+".match", nil, "is missing, so no message reaches the source",
				"name the messages that it gets, such as [{sink: search}] or [{topic: <ARN>}], or write [{named: true}] "+
					"if every sender may choose it by the attribute lull-source")
		}
	}
}

func checkFetch(_ *Config, f *checker, s namedSource) {
	if s.Fetch == nil {
		return
	}
	for _, p := range s.Fetch.Problems(s.Source) {
		f.fault(s.path+"."+p.Setting, p.Value, p.Problem, strings.ReplaceAll(p.Fix, "fetch.", s.path+".fetch."))
	}
}

// checkFetchTime checks that one invocation has time for one load and one call to the sink. The
// lease follows from the invocation's time-out, Ti.
func checkFetchTime(c *Config, f *checker, s namedSource) {
	if s.Fetch != nil {
		checkTurn(c, f, s.path+".fetch.timeout", s.Fetch.Timeout, longestEnrich(c.Collections))
	}
}

// checkTurn checks that one invocation has time for the requests before the sink, the call to the
// sink, and the commits.
func checkTurn(c *Config, f *checker, setting string, timeout, enrich time.Duration) {
	rest := enrich + c.Index.SinkDeadline + sinkMargin
	if timeout+rest < c.Index.Timeout {
		return
	}
	others := ""
	if enrich > 0 {
		others = fmt.Sprintf("+ the enrich.timeout of %s ", words(enrich))
	}
	f.fault(setting, timeout, fmt.Sprintf(
		"%s+ the index.sinkDeadline of %s + 2s is not less than the index.timeout of %s", others,
		words(c.Index.SinkDeadline), words(c.Index.Timeout)),
		fmt.Sprintf("lower it below %s, lower index.sinkDeadline, or raise index.timeout to at least %s",
			words(max(c.Index.Timeout-rest, 0)), words(ceil(timeout+rest+time.Millisecond, time.Second))))
}

// longestEnrich is the longest time-out of an enricher, or 0 if no collection has an enricher.
func longestEnrich(all map[string]Collection) (longest time.Duration) {
	for _, o := range all {
		if o.Enrich != nil {
			longest = max(longest, o.Enrich.Timeout)
		}
	}
	return longest
}
