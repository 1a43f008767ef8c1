package config

import (
	"maps"
	"slices"
	"strings"
)

// sourceRules are about one source each.
var sourceRules = []Rule{
	{"source-options", "A source has the options of its own kind only: others would be ignored.", checkSourceOptions},
	{"source-class", "The kinds govuk, s3 and dynamodb-stream have versions of one class.", checkSourceClass},
	{
		"source-arrival",
		"The time of arrival is a version of the class time, and one document's versions are all of one class: " +
			"arrival needs that class, and is not for govuk, s3 and dynamodb-stream.", checkSourceArrival,
	},
	{"source-json", "A json source says where the id and the version are.", checkSourceJSON},
	{
		"source-projection", "govuk has a projection of its own, and an s3 object is no message to take parts from.",
		checkSourceProjection,
	},
}

// eachSource calls check for every source, by name, with its path.
func eachSource(c *Config, check func(path string, s Source)) {
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		check("sources."+printable(name), c.Sources[name])
	}
}

func checkSourceOptions(c *Config, f *checker) {
	eachSource(c, func(path string, s Source) {
		for _, o := range []struct {
			name string
			kind SourceKind
			set  bool
		}{
			{"govuk", SourceGovuk, s.Govuk.IgnoreTypes != nil || s.Govuk.IgnorePrefixes != nil ||
				s.Govuk.OverridePaths != nil || s.Govuk.Locales != nil},
			{"json", SourceJSON, s.JSON.ID+s.JSON.Version+s.JSON.Time+s.JSON.Operation+s.JSON.Collection != "" ||
				s.JSON.DeleteValues != nil},
			{"debezium", SourceDebezium, s.Debezium != Debezium{}},
			{"s3", SourceS3, s.S3 != S3{}},
		} {
			if o.set && s.Kind != o.kind {
				f.fault(path+"."+o.name, nil, "are options of the kind "+o.name+", but the source's kind is "+
					string(s.Kind),
					"remove them, or set "+path+".kind to "+o.name)
			}
		}
	})
}

func checkSourceClass(c *Config, f *checker) {
	eachSource(c, func(path string, s Source) {
		if want := classOf(s.Kind); s.Kind.fixedClass() && s.Class != want {
			f.fault(path+".class", string(s.Class), "is not the class of the versions that the kind "+string(s.Kind)+
				" has",
				"remove it, or write "+string(want))
		}
	})
}

func checkSourceArrival(c *Config, f *checker) {
	eachSource(c, func(path string, s Source) {
		switch {
		case s.NoVersion != NoVersionArrival:
		case s.Kind.fixedClass():
			f.fault(path+".noVersion", string(s.NoVersion), "does not fit the kind "+string(s.Kind)+
				", whose messages have versions of the class "+string(classOf(s.Kind)),
				"write refuse")
		case s.Class != ClassTime:
			f.fault(path+".class", string(s.Class), "does not fit noVersion: arrival, whose versions are times",
				"write "+path+".class: time, or "+path+".noVersion: refuse")
		}
	})
}

func checkSourceJSON(c *Config, f *checker) {
	eachSource(c, func(path string, s Source) {
		if s.Kind != SourceJSON {
			return
		}
		if s.JSON.ID == "" {
			f.fault(path+".json.id", nil, "is missing", "write where the document's id is, such as /id")
		}
		if s.JSON.Version == "" && s.NoVersion != NoVersionArrival {
			f.fault(path+".json.version", nil, "is missing", "write where the version is, such as /version, or set "+
				path+".noVersion to arrival")
		}
		if s.JSON.Operation == "" && len(s.JSON.DeleteValues) > 0 {
			f.fault(path+".json.operation", nil, "is missing although deleteValues has "+
				strings.Join(s.JSON.DeleteValues, ", "),
				"write where the operation is, such as /op, or remove "+path+".json.deleteValues")
		}
		if s.JSON.Operation != "" && len(s.JSON.DeleteValues) == 0 {
			f.fault(path+".json.deleteValues", nil, "is empty although operation is set: no event would be a delete",
				"list the values that mean delete, or remove "+path+".json.operation")
		}
	})
}

func checkSourceProjection(c *Config, f *checker) {
	eachSource(c, func(path string, s Source) {
		if len(s.Projection) > 0 && (s.Kind == SourceGovuk || s.Kind == SourceS3) {
			f.fault(path+".projection", nil, "would be ignored: the kind "+string(s.Kind)+
				" decides itself what becomes the document", "remove it")
		}
	})
}
