package config

import (
	"maps"
	"slices"

	"github.com/lullhq/lull/source"
)

// sourceRules are about one source each.
var sourceRules = []Rule{
	{"source-kind", "What the options of a kind say fits the source's other settings.", checkSourceKind},
	{"source-class", "A kind whose messages all have versions of one class has that class.", checkSourceClass},
	{
		"source-arrival",
		"The time of arrival is a version of the class time, and one document's versions are all of one class: " +
			"arrival needs that class, and is not for a kind whose messages all have versions.", checkSourceArrival,
	},
	{"source-projection", "A kind that decides itself what becomes the document has no projection.", checkSourceProjection},
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
		case s.NoVersion != NoVersionArrival:
		case k.Versioned:
			f.fault(path+".noVersion", string(s.NoVersion), "does not fit the kind "+s.Kind+
				", whose messages have versions of the class "+string(k.Class), "write refuse")
		case s.Class != ClassTime:
			f.fault(path+".class", string(s.Class), "does not fit noVersion: arrival, whose versions are times",
				"write "+path+".class: time, or "+path+".noVersion: refuse")
		}
	})
}

func checkSourceProjection(c *Config, f *checker) {
	eachSource(c, func(path string, s Source, k source.Kind) {
		if len(s.Projection) > 0 && k.OwnDocument {
			f.fault(path+".projection", nil, "would be ignored: the kind "+s.Kind+
				" decides itself what becomes the document", "remove it")
		}
	})
}
