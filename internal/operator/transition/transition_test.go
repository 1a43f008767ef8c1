// SPDX-License-Identifier: Apache-2.0

package transition

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/config"
	_ "github.com/lullhq/lull/sink/opensearch"
	_ "github.com/lullhq/lull/source/builtin"
	"github.com/lullhq/lull/source/govuk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each case shows a rule of CloudFormation with the smallest templates.
func TestTemplatesFollowCloudFormationsRules(t *testing.T) {
	t.Parallel()
	const kept = `,"DeletionPolicy":"RetainExceptOnCreate","UpdateReplacePolicy":"Retain"`
	machine := func(name, kind string) string {
		return `"M":{"Type":"AWS::StepFunctions::StateMachine","Properties":{"StateMachineName":"` + name +
			`","StateMachineType":"` + kind + `"}}`
	}
	queue := func(id, name, seconds, policies string) string {
		return `"` + id + `":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"` + name + `","VisibilityTimeout":` +
			seconds + `}` + policies + `}`
	}
	subscription := func(id, topic string) string {
		return `"` + id + `":{"Type":"AWS::SNS::Subscription","Properties":{"Protocol":"sqs","TopicArn":"` + topic +
			`","Endpoint":{"Fn::GetAtt":["Q","Arn"]}}}`
	}
	for name, tt := range map[string]struct {
		older, newer string
		want         []string // action, id, and what happens to the former resource
	}{
		"nothing":                {queue("Q", "q", "30", ""), queue("Q", "q", "30", ""), nil},
		"a property that may":    {queue("Q", "q", "30", ""), queue("Q", "q", "40", ""), []string{"updated Q"}},
		"a policy":               {queue("Q", "q", "30", ""), queue("Q", "q", "30", kept), []string{"updated Q"}},
		"the type under a name":  {machine("m", "EXPRESS"), machine("m", "STANDARD"), []string{"refused M"}},
		"the type under another": {machine("m", "EXPRESS"), machine("n", "STANDARD"), []string{"replaced M"}},
		"a queue's name, retained": {
			queue("Q", "q", "30", kept),
			queue("Q", "r", "30", kept),
			[]string{"replaced Q kept"},
		},
		"a queue's name": {queue("Q", "q", "30", ""), queue("Q", "r", "30", ""), []string{"replaced Q"}},
		"an id under a name": {
			queue("Q", "q", "30", ""),
			queue("R", "q", "30", ""),
			[]string{"removed Q", "refused R"},
		},
		"a queue that stays": {
			queue("Q", "q", "30", kept) + "," + machine("m", "EXPRESS"),
			machine("m", "EXPRESS"),
			[]string{"removed Q kept"},
		},
		"a subscription's id": {subscription("A", "t"), subscription("B", "t"), []string{"removed A", "lost B"}},
		"topics that change places": {
			subscription("A", "t") + "," + subscription("B", "u"),
			subscription("A", "u") + "," + subscription("B", "t"),
			[]string{"lost A", "lost B"},
		},
		"what refers to it": {
			queue("Q", "q", "30", "") + "," + subscription("A", "t"),
			queue("Q", "r", "30", "") + "," + subscription("A", "t"),
			[]string{"replaced A", "replaced Q"},
		},
		"another type": {
			`"X":{"Type":"AWS::SQS::Queue"}`, `"X":{"Type":"AWS::SNS::Topic"}`, []string{"refused X"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, c := range Templates(template(t, tt.older), template(t, tt.newer)) {
				text := string(c.Action) + " " + c.ID
				if c.Kept {
					text += " kept"
				}
				got = append(got, text)
				if safe := c.Action == Created || c.Action == Updated ||
					c.Action == Removed && c.Type != "AWS::SQS::Queue"; c.Serious() == safe {
					t.Errorf("%s: serious is %t", text, c.Serious())
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func template(t *testing.T, resources string) Template {
	t.Helper()
	parsed, err := ReadTemplate(strings.NewReader(`{"Resources":{` + resources + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestTemplatesAreReadAsTheCommandLinePrintsThem(t *testing.T) {
	t.Parallel()
	const body = `{"Resources":{"Q":{"Type":"AWS::SQS::Queue"}}}`
	quoted := `"{\"Resources\":{\"Q\":{\"Type\":\"AWS::SQS::Queue\"}}}"`
	for _, text := range []string{
		body, `{"TemplateBody":` + body + `}`, `{"StagesAvailable":[],"TemplateBody":` + quoted + `}`,
	} {
		parsed, err := ReadTemplate(strings.NewReader(text))
		if err != nil || parsed.Resources["Q"].Type != "AWS::SQS::Queue" {
			t.Errorf("%s: got %v, %v", text, parsed, err)
		}
	}
	for _, text := range []string{
		"", "[]", "{}", "Resources:\n", `{"TemplateBody":null}`, strings.Repeat(" ", maxTemplate+1),
	} {
		if _, err := ReadTemplate(strings.NewReader(text)); err == nil {
			t.Errorf("%.20q: got no error", text)
		}
	}
}

// A change of settings can affect documents, rows and messages. No template shows these effects.
func TestSettingsSayWhatIsLostOrLeftBehind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*config.Config)
		want   string // the settings with a serious finding
	}{
		"nothing":            {func(*config.Config) {}, ""},
		"a timing":           {func(c *config.Config) { c.Debounce.Quiet++ }, ""},
		"the kind of flight": {func(c *config.Config) { c.Flight.Kind = config.FlightStandard }, ""},
		"another stack":      {func(c *config.Config) { c.Stack = "other" }, "stack"},
		"provisioned":        {func(c *config.Config) { c.Table.Billing = config.Provisioned }, "table.billing"},
		"another index": {
			func(c *config.Config) { sink(c, func(s *config.Sink) { s.Index = "new" }) },
			"sinks.search.index",
		},
		"another engine": {
			func(c *config.Config) { sink(c, func(s *config.Sink) { s.URL = "https://b.example.org" }) },
			"sinks.search.url",
		},
		"one more sink": {
			func(c *config.Config) { c.Sinks["more"], c.DefaultSink = c.Sinks["search"], "search" },
			"",
		},
		"a sink's name": {func(c *config.Config) {
			c.Sinks, c.DefaultSink = map[string]config.Sink{"main": c.Sinks["search"]}, "main"
		}, "collections.news sinks.search"},
		"a shorter retention": {func(c *config.Config) { c.Queues.Retention-- }, "queues.retention"},
		"a longer retention":  {func(c *config.Config) { c.Queues.Retention++ }, ""},
		"shorter for the dead": {
			func(c *config.Config) { c.Queues.DeadLetterRetention-- },
			"queues.deadLetterRetention",
		},
		"no archive":              {func(c *config.Config) { c.Archive.Keep = 0 }, "archive.keep"},
		"a shorter archive":       {func(c *config.Config) { c.Archive.Keep -= 24 * time.Hour }, "archive.keep"},
		"a longer archive":        {func(c *config.Config) { c.Archive.Keep += 24 * time.Hour }, ""},
		"rows kept for longer":    {func(c *config.Config) { c.Lifecycle.RowRetention++ }, "lifecycle.rowRetention"},
		"rows kept for less long": {func(c *config.Config) { c.Lifecycle.RowRetention-- }, ""},
		"a class": {
			func(c *config.Config) { source(c, func(s *config.Source) { s.Class = config.ClassTime }) },
			"sources.native.class",
		},
		"a class, beside a new source with the beginning of its name": {
			func(c *config.Config) {
				c.Sources["nat"] = c.Sources["native"]
				source(c, func(s *config.Source) { s.Class = config.ClassTime })
			},
			"sources.native.class",
		},
		"a raised epoch": {func(c *config.Config) { source(c, func(s *config.Source) { s.Epoch = 6 }) }, ""},
		"a lowered epoch": {
			func(c *config.Config) { source(c, func(s *config.Source) { s.Epoch = 4 }) },
			"sources.native.epoch",
		},
		"one more locale": {locales("en", "cy"), ""},
		"another order of locales": {
			locales("cy", "en"),
			"sources.pages.govuk.locales[0]",
		},
		"a source that goes": {func(c *config.Config) {
			c.Sources, c.DefaultSource = map[string]config.Source{"other": c.Sources["native"]}, "other"
		}, "defaultSource sources.native sources.pages"},
		"a collection that goes": {func(c *config.Config) { delete(c.Collections, "news") }, ""},
		"another collection":     {func(c *config.Config) { c.Collections["more"] = config.Collection{} }, ""},
		"a collection for the next": {
			func(c *config.Config) { c.Collections = map[string]config.Collection{"next": {}} },
			"collections.news",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var older, newer config.Config
			for _, c := range []*config.Config{&older, &newer} {
				*c = config.Default()
				c.Sinks = map[string]config.Sink{
					"search": {Kind: "opensearch", Index: "lull", URL: "https://a.example.org"},
				}
				c.Collections = map[string]config.Collection{"news": {}}
				c.DefaultCollection = "news"
				c.Archive.Keep = 7 * 24 * time.Hour
				source(c, func(s *config.Source) { s.Epoch = 5 })
				locales("en")(c)
				c.Complete()
			}
			tt.change(&newer)
			newer.Complete()
			var got []string
			for _, f := range Settings(&older, &newer) {
				if f.Does == "" || f.Stack == "" || f.Old == "" && f.New == "" {
					t.Errorf("%+v lacks Does, Stack, or both Old and New", f)
				}
				if f.Serious {
					got = append(got, f.Setting)
				}
				if f.Serious && f.First == "" {
					t.Errorf("%s: the finding is serious, but does not say what to do first", f.Setting)
				}
			}
			slices.Sort(got)
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}

// locales sets the locales of a source that had only en.
func locales(names ...string) func(*config.Config) {
	return func(c *config.Config) {
		c.Sources["pages"] = config.Source{Kind: "govuk", Options: govuk.Options{Govuk: govuk.Lists{Locales: names}}}
	}
}

func sink(c *config.Config, change func(*config.Sink)) {
	s := c.Sinks["search"]
	change(&s)
	c.Sinks["search"] = s
}

func source(c *config.Config, change func(*config.Source)) {
	s := c.Sources["native"]
	change(&s)
	c.Sources["native"] = s
}

// The rows of the first sink are named after the collection only, so the first sink must stay
// first.
func TestAListOfSinksChangesAfterItsFirst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to string
		serious  bool
		does     string
	}{
		{"search", "search, vectors", false, "also written to vectors"},
		{"search, vectors", "search, more, vectors", false, "also written to more"},
		{"search, vectors, more", "search, more, vectors", false, "nothing"},
		{"search, vectors", "search", true, "the removed sink keeps its documents"},
		{"search, vectors", "vectors, search", true, "vectors takes over the rows of search"},
		{"search, vectors", "vectors", true, "vectors takes over the rows of search"},
		{"search", "vectors, search", true, "vectors takes over the rows of search"},
		{"search", "vectors", true, "its documents stay in search"},
	} {
		var both [2]config.Config
		for i, sinks := range []string{tt.from, tt.to} {
			c := config.Default()
			c.Sinks = map[string]config.Sink{}
			for _, name := range []string{"search", "vectors", "more"} {
				c.Sinks[name] = config.Sink{Kind: "opensearch", Index: name, URL: "https://a.example.org"}
			}
			c.DefaultSink, c.Collections = "search", map[string]config.Collection{
				"news": {Sinks: strings.Split(sinks, ", ")},
			}
			c.Complete()
			both[i] = c
		}
		var got []string
		for _, f := range Settings(&both[0], &both[1]) {
			if f.Setting != "collections.news" {
				continue
			}
			if got = append(got, f.Does); f.Serious != tt.serious || f.Serious && f.First == "" {
				t.Errorf("%s to %s: %+v, want serious to be %t", tt.from, tt.to, f, tt.serious)
			}
		}
		if len(got) != 1 || !strings.Contains(got[0], tt.does) {
			t.Errorf("%s to %s: got %q, want %s", tt.from, tt.to, got, tt.does)
		}
	}
}
