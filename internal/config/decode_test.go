// SPDX-License-Identifier: Apache-2.0

package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config/tree"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
	"github.com/lullhq/lull/source/govuk"
)

func TestFileReplacesDefaults(t *testing.T) {
	t.Parallel()
	c, err := ParseJSON([]byte(`{
		"stack": "pub",
		"sources": {"govuk": {"kind": "govuk", "epoch": 4294967294, "govuk": {"ignoreTypes": []}}},
		"sinks": {"os": {"kind": "opensearch", "index": "lull-{collection}", "url": "https://h.example.org", "versions": false, "bulkBytes": "1MB", "applyDelay": "20s"}},
		"collections": {"news": {"quiet": "6s", "leading": true}, "2024": null},
		"debounce": {"maxWait": "35s"},
		"queues": {"live": {"batch": 500}, "retention": "4d12h", "maxInFlight": 90000},
		"payload": {"referenceAbove": 2048, "allow": [{"bucket": "media", "prefix": "a/"}], "httpHosts": null},
		"lifecycle": null
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Stack = "pub"
	lists, err := source.OptionsOf[govuk.Options](Source{Kind: "govuk"}.Complete())
	if err != nil {
		t.Fatal(err)
	}
	lists.Govuk.IgnoreTypes = []string{}
	want.Sources = map[string]Source{"govuk": {
		Kind: "govuk", Epoch: 1<<32 - 2, Options: lists,
	}}
	sink := newSink("opensearch")
	sink.URL, sink.Versions, sink.BulkBytes, sink.ApplyDelay = "https://h.example.org", ptr(false), setting.MB, ptr(20*second)
	want.Sinks = map[string]Sink{"os": sink}
	want.Collections = map[string]Collection{"news": {Quiet: ptr(6 * second), Leading: ptr(true)}, "2024": {}}
	want.Debounce.MaxWait = 35 * second
	want.Queues.Live.Batch, want.Queues.Retention, want.Queues.MaxInFlight = 500, 4*day+12*time.Hour, 90_000
	want.Payload.ReferenceAbove = 2048
	want.Payload.Allow = []BucketPrefix{{Bucket: "media", Prefix: "a/"}}
	want.DefaultSource, want.DefaultSink, want.DefaultCollection = "govuk", "os", ""
	want.Complete()
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("got %v, want no fault", err)
	}
}

func TestBadFilesAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string // for each fault: its line, its setting and a part of its fix
	}{
		{"unknown key", `{"debounce": {"quite": "5s"}}`, []string{"1 debounce.quite: did you mean debounce.quiet?"}},
		{
			"other case", `{"debounce": {"maxwait": "5s"}}`,
			[]string{"1 debounce.maxwait: did you mean debounce.maxWait?"},
		},
		{
			"other spelling", `{"queues": {"dead-letter-retention": "5s"}}`,
			[]string{"1 queues.dead-letter-retention: did you mean queues.deadLetterRetention?"},
		},
		{"wrong group", "{\n\"quiet\": \"5s\"}", []string{"2 quiet: did you mean debounce.quiet?"}},
		{
			"wrong group, option", `{"applyDelay": "5s"}`,
			[]string{"1 applyDelay: did you mean sinks.<name>.applyDelay?"},
		},
		{
			"nothing like it", `{"flight": {"colour": 1}}`,
			[]string{"1 flight.colour: remove it; allowed here are: ambiguousRetry, continueAfter, kind"},
		},
		{"strange key", `{"flight": {"a.b\u0000": 1}}`, []string{`1 flight."a.b\x00": remove it`}},
		{"twice", "{\"stack\": \"a\",\n\"stack\": \"b\"}", []string{"2 stack: keep one"}},
		{"name twice", "{\"collections\": {\"a\": {},\n\"a\": {}}}", []string{"2 collections.a: keep one"}},
		{
			"number for duration", `{"debounce": {"quiet": 5}}`,
			[]string{"1 debounce.quiet: write a number with ms, s, m, h or d"},
		},
		{"no unit", `{"debounce": {"quiet": "5"}}`, []string{"1 debounce.quiet: write a number with ms, s, m, h or d"}},
		{
			"truth for duration", `{"debounce": {"quiet": true}}`,
			[]string{"1 debounce.quiet: write a number with a unit, such as 5s"},
		},
		{
			"truth for size", `{"payload": {"referenceAbove": true}}`,
			[]string{"1 payload.referenceAbove: write a number with a unit, such as 256KB"},
		},
		{
			"no size", `{"payload": {"referenceAbove": "1.5MB"}}`,
			[]string{"1 payload.referenceAbove: write a whole number with B, KB, MB or GB"},
		},
		{
			"text for count", `{"queues": {"live": {"batch": "10"}}}`,
			[]string{"1 queues.live.batch: write digits without quotes"},
		},
		{"fraction", `{"queues": {"live": {"batch": 1.5}}}`, []string{"1 queues.live.batch: write digits"}},
		{"exponent", `{"queues": {"live": {"batch": 1e3}}}`, []string{"1 queues.live.batch: write digits"}},
		{
			"beyond int64", `{"queues": {"live": {"batch": 99999999999999999999}}}`,
			[]string{"1 queues.live.batch: write digits"},
		},
		{
			"negative epoch", `{"sources": {"a": {"kind": "native", "epoch": -1}}}`,
			[]string{"1 sources.a.epoch: write digits"},
		},
		{
			"text for flag", `{"debounce": {"leading": "yes"}}`,
			[]string{"1 debounce.leading: write true or false without quotes"},
		},
		{"number for text", `{"stack": 7}`, []string{"1 stack: put it in quotes"}},
		{"group for text", `{"stack": {}}`, []string{"1 stack: write one text"}},
		{"no value", `{"stack": null}`, []string{"1 stack: give it a value or remove the line"}},
		{
			"no override", `{"collections": {"a": {"quiet": null}}}`,
			[]string{"1 collections.a.quiet: give it a value or remove the line"},
		},
		{"text for list", `{"payload": {"httpHosts": "a.example.org"}}`, []string{"1 payload.httpHosts: write a list"}},
		{
			"number in list", `{"payload": {"httpHosts": ["a.example.org", 7]}}`,
			[]string{"1 payload.httpHosts[1]: put it in quotes"},
		},
		{"text for group", `{"debounce": "5s"}`, []string{"1 debounce: write its settings below it"}},
		{"text for names", `{"sinks": "search"}`, []string{"1 sinks: write its settings below it"}},
		{"list for all", `[]`, []string{"1 the file: write its settings below it"}},
		{
			"explicit zero", `{"sinks": {"s": {"kind": "memory", "bulkDocuments": 0}}}`,
			[]string{"1 sinks.s.bulkDocuments: at least 1"},
		},
		{
			"explicit nothing", `{"sources": {"s": {"kind": "native", "class": ""}}}`,
			[]string{"1 sources.s.class: write one of int"},
		},
		{
			"beside contradictions",
			"{\"stak\": \"a\",\n\"debounce\": {\"capGrace\": \"70s\"}, \"retry\": {\"backoffMin\": \"20s\", " +
				"\"backoffMax\": \"10s\"}}",
			[]string{
				"1 stak: did you mean stack?", "2 debounce.capGrace: at most 1m", "0 retry.backoffMin: at most 10s",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := ParseJSON([]byte(tt.text))
			faults := Faults(err)
			if len(faults) != len(tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			for i, want := range tt.want {
				f := faults[i]
				place, fix, _ := strings.Cut(want, ": ")
				line, setting, _ := strings.Cut(place, " ")
				if int(line[0]-'0') != f.Line || setting != f.Setting || !strings.Contains(f.Fix, fix) {
					t.Errorf("got %v, want %q", f, want)
				}
			}
			if !reflect.DeepEqual(c, Config{}) {
				t.Errorf("got the settings %+v and an error, want no settings", c)
			}
		})
	}
}

// judged decodes settings and validates them.
func judged(root tree.Node) (Config, error) {
	c, err := Decode(root)
	if err == nil {
		err = c.Validate()
	}
	return c, err
}

// A program does not know the options of a kind that it does not link. So the only fault is the
// missing kind, and not the options. The fix helps a reader who writes kafka as the kind of a
// source.
func TestAKindThatIsNotLinkedIsTheOneFault(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ setting, text, fix string }{
		{"sinks.s.kind", `{"sinks": {"s": {"kind": "folder", "root": "/srv", "depth": 3}}}`, "import the package"},
		{"sources.a.kind", `{"sources": {"a": {"kind": "csv", "csv": {"comma": ";"}}}}`, "import the package"},
		{
			"sources.a.kind", `{"sources": {"a": {"kind": "kafka"}}}`,
			"kafka only transports messages: write the kind of their content",
		},
		{"sinks.s.kind", `{"sinks": {"s": {"kind": "kafka"}}}`, "write one of bleve"},
	} {
		root, err := tree.ParseJSON([]byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = judged(root)
		if faults := Faults(err); len(faults) != 1 || faults[0].Setting != tt.setting ||
			!strings.Contains(faults[0].Fix, tt.fix) {
			t.Errorf("%s: got %v, want one fault that says %s", tt.setting, err, tt.fix)
		}
	}
}

func TestNearestName(t *testing.T) {
	t.Parallel()
	names := []string{"quiet", "maxWait", "capGrace", "minInterval", "leading"}
	for typed, want := range map[string]string{
		"quite": "quiet", "Quiet": "quiet", "max_wait": "maxWait", "maxWiat": "maxWait", "grace": "",
		"interval": "minInterval",
		"leadin":   "leading", "": "", strings.Repeat("q", 10_000): "", "kind": "",
	} {
		if got := setting.Nearest(typed, names); got != want {
			t.Errorf("%.20q: got %q, want %q", typed, got, want)
		}
	}
}
