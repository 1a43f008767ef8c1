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

// sourceRules are about one source each.
var sourceRules = []Rule{
	{"source-kind", "What the options of a kind say fits the source's other settings.", checkSourceKind},
	{"source-class", "A kind whose messages all have versions of one class has that class.", checkSourceClass},
	{
		"source-arrival",
		"The time of arrival is a version of the class time, a place in a stream one of int or lex, and one " +
			"document's versions are all of one class: arrival and position need theirs, and are not for a kind whose " +
			"messages all have versions.", checkSourceArrival,
	},
	{"source-max-version", "The greatest version is one of the source's class.", checkSourceMaxVersion},
	{
		"source-collections", "Where a source lists collections, its events that name none go to one of them.",
		checkSourceCollections,
	},
	{
		"source-match", "A rule that gives messages to a source says something, and no other rule says the same.",
		checkSourceMatch,
	},
	{
		"source-reach", "Where there are several sources, each but the default one has a rule that gives it messages.",
		checkSourceReach,
	},
	{
		"source-lines", "The source of an object's lines exists, and does not name objects of lines itself.", checkSourceLines,
	},
	{
		"source-projection", "A kind that decides itself what becomes the document has no projection, unless it is fetched.",
		checkSourceProjection,
	},
	{
		"fetch",
		"What is fetched has an address with {id} that nobody else chooses, and a version that can be compared with the " +
			"event's.", checkFetch,
	},
	{
		"fetch-time",
		"fetch.timeout + enrich.timeout + the sink deadline + 2s < Ti: what was claimed can be loaded, written and committed.",
		checkFetchTime,
	},
}

// eachSource calls check for every source, by name, with its path. It leaves out sources of a kind
// that is not registered in this program.
func eachSource(c *Config, check func(path string, s Source, k source.Kind)) {
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		s := c.Sources[name]
		if k, ok := source.Lookup(s.Kind); ok {
			check("sources."+printable(name), s, k)
		}
	}
}

func checkSourceKind(c *Config, f *checker) {
	eachSource(c, func(path string, s Source, k source.Kind) {
		checkOptions(f, path, s, s.Options, k.Kind, k.Check)
	})
}

func checkSourceClass(c *Config, f *checker) {
	eachSource(c, func(path string, s Source, k source.Kind) {
		if k.Versioned && s.Class != k.Class {
			f.fault(path+".class", string(s.Class), "is not the class of the versions that the kind "+s.Kind+" has",
				"remove it, or write "+string(k.Class))
		}
	})
}

func checkSourceArrival(c *Config, f *checker) {
	eachSource(c, func(path string, s Source, k source.Kind) {
		switch {
		case s.NoVersion == NoVersionRefuse:
		case k.Versioned:
			f.fault(path+".noVersion", string(s.NoVersion), "does not fit the kind "+s.Kind+
				", whose messages have versions of the class "+string(k.Class), "write refuse")
		case s.NoVersion == NoVersionPosition && s.Class != ClassInt && s.Class != ClassLex:
			f.fault(path+".class", string(s.Class), "does not fit noVersion: position",
				"write "+path+".class: int for Kafka's offsets, lex for Kinesis's sequence numbers, or "+path+
					".noVersion: refuse")
		case s.NoVersion == NoVersionArrival && s.Class != ClassTime:
			f.fault(path+".class", string(s.Class), "does not fit noVersion: arrival, whose versions are times",
				"write "+path+".class: time, or "+path+".noVersion: refuse")
		}
	})
}

func checkSourceLines(c *Config, f *checker) {
	eachSource(c, func(path string, s Source, _ source.Kind) {
		name := s.Lines()
		of, exists := c.Sources[name]
		path += "." + s.Kind + ".lines"
		switch {
		case name == "":
		case !exists:
			f.fault(path, name, "is not a source", "write the name of one under sources, or add it there")
		case of.Lines() != "":
			f.fault(path, name, "is a source whose messages name objects of many lines themselves",
				"name the source that decodes one line")
		case s.Fetch != nil:
			f.fault(path, name, "does not go together with fetch: the lines are messages of the other source",
				"move fetch to sources."+printable(name))
		}
	})
}

func checkSourceProjection(c *Config, f *checker) {
	eachSource(c, func(path string, s Source, k source.Kind) {
		if len(s.Projection) > 0 && k.OwnDocument && s.Fetch == nil {
			f.fault(path+".projection", nil, "would be ignored: the kind "+s.Kind+
				" decides itself what becomes the document", "remove it")
		}
	})
}

func checkSourceMaxVersion(c *Config, f *checker) {
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		s := c.Sources[name]
		class, err := shard.ParseClass(string(s.Class))
		if s.MaxVersion == "" || err != nil { // the bounds report an unknown class
			continue
		}
		if _, err := shard.ParseVersion(class, s.MaxVersion); err != nil {
			f.fault("sources."+printable(name)+".maxVersion", s.MaxVersion, "is not a version of the class "+
				string(s.Class), "write one as the upstream does, in quotes, or remove it")
		}
	}
}

func checkSourceCollections(c *Config, f *checker) {
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		list, to := c.Sources[name].Collections, c.CollectionFor(name)
		if len(list) > 0 && to != "" && !slices.Contains(list, to) {
			f.fault("sources."+printable(name)+".collections", strings.Join(list, ", "),
				"does not list "+to+", where events of the source go that name no collection",
				"set sources."+printable(name)+".collection to one of the list, or add "+to)
		}
	}
}

func checkSourceMatch(c *Config, f *checker) {
	first := make(map[source.Match]string)
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		for i, m := range c.Sources[name].Match {
			path := fmt.Sprintf("sources.%s.match[%d]", printable(name), i)
			if m.Empty() {
				f.fault(path, nil, "says nothing, so that it would take every message",
					"remove it and set defaultSource, or name a sink, topic, bus, detailType, bucket, stream or queue, "+
						"or named: true")
				continue
			}
			said := m // of rules that ask for the name of their source, two are never the same
			if m.Named {
				said.Topic += "\x00" + name
			}
			if other, taken := first[said]; taken {
				f.fault(path, nil, "says the same as "+other, "keep one of the two")
				continue
			}
			first[said] = path
		}
	}
}

func checkSourceReach(c *Config, f *checker) {
	if _, exists := c.Sources[c.DefaultSource]; !exists {
		return // the rule "default" reports it
	}
	lines := make(map[string]bool)
	for _, s := range c.Sources {
		lines[s.Lines()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		if len(c.Sources) > 1 && name != c.DefaultSource && len(c.Sources[name].Match) == 0 && !lines[name] {
			f.fault("sources."+printable(name)+".match", nil, "is missing, so that no message reaches the source",
				"say which messages it takes, such as [{sink: search}] or [{topic: <ARN>}], or write [{named: true}] "+
					"where every sender may choose it by the attribute lull-source")
		}
	}
}

func checkFetch(c *Config, f *checker) {
	eachSource(c, func(path string, s Source, _ source.Kind) {
		if s.Fetch == nil {
			return
		}
		for _, p := range s.Fetch.Problems(s) {
			f.fault(path+"."+p.Setting, p.Value, p.Problem, strings.ReplaceAll(p.Fix, "fetch.", path+".fetch."))
		}
	})
}

// checkFetchTime: one load and one call to the sink must end in an invocation. The lease follows
// Ti.
func checkFetchTime(c *Config, f *checker) {
	eachSource(c, func(path string, s Source, _ source.Kind) {
		enrich := c.longestEnrich()
		rest := enrich + c.Index.SinkDeadline + sinkMargin
		if s.Fetch == nil || s.Fetch.Timeout+rest < c.Index.Timeout {
			return
		}
		others := ""
		if enrich > 0 {
			others = fmt.Sprintf("+ the enrich.timeout of %s ", words(enrich))
		}
		f.fault(path+".fetch.timeout", s.Fetch.Timeout, fmt.Sprintf(
			"%s+ the index.sinkDeadline of %s + 2s is not less than the index.timeout of %s", others,
			words(c.Index.SinkDeadline), words(c.Index.Timeout)),
			fmt.Sprintf("lower it below %s, lower index.sinkDeadline, or raise index.timeout to at least %s",
				words(max(c.Index.Timeout-rest, 0)), words(ceil(s.Fetch.Timeout+rest+time.Millisecond, time.Second))))
	})
}

// longestEnrich is the longest time-out of an enricher, 0 where there is none.
func (c *Config) longestEnrich() (longest time.Duration) {
	eachEnrich(c, func(_ string, e Enrich) { longest = max(longest, e.Timeout) })
	return longest
}
