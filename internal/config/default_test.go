package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink/opensearch"
)

func TestDefaultsHaveNoFault(t *testing.T) {
	t.Parallel()
	c := Default()
	if err := c.Validate(); err != nil {
		t.Errorf("got %v, want no fault", err)
	}
	openSearch(&c)
	if err := c.ValidateDeployed(); err != nil {
		t.Errorf("deployed: got %v, want no fault", err)
	}
	withoutVersions(&c)
	if err := c.ValidateDeployed(); err != nil {
		t.Errorf("without versions: got %v, want no fault", err)
	}
}

// The table of the design, line by line.
func TestDefaultsAreTheDesigns(t *testing.T) {
	t.Parallel()
	c := Default()
	noVersions := Default()
	withoutVersions(&noVersions)
	sink := c.Sinks["search"]
	for _, tt := range []struct {
		name      string
		got, want any
	}{
		{"quiet", c.Debounce.Quiet, 5 * second},
		{"max wait", c.Debounce.MaxWait, 30 * second},
		{"cap grace", c.Debounce.CapGrace, 10 * second},
		{"min interval", c.Debounce.MinInterval, second},
		{"leading", c.Debounce.Leading, false},
		{"receive timeout", c.Receive.Timeout, 6 * second},
		{"index timeout", c.Index.Timeout, 10 * second},
		{"guard", c.Index.Guard, 3 * second},
		{"applyDelay with versions", c.ApplyDelay("search"), time.Duration(0)},
		{"applyDelay without versions", noVersions.ApplyDelay("search"), 30 * second},
		{"live", c.Queues.Live, Lane{1000, 2 * second, 20}},
		{"bulk", c.Queues.Bulk, Lane{1000, 3 * second, 4}},
		{"visibility", c.Queues.Visibility, 40 * second},
		{"sink deadline", c.Index.SinkDeadline, 6 * second},
		{"bulk documents", sink.BulkDocuments, 500},
		{"bulk bytes", sink.BulkBytes, setting.Size(5 << 20)},
		{"queue retention", c.Queues.Retention, 7 * 24 * time.Hour},
		{"dead-letter retention", c.Queues.DeadLetterRetention, 14 * 24 * time.Hour},
		{"maxRefusals", c.Retry.MaxRefusals, 5},
		{"dead deadline", c.Retry.DeadDeadline, 72 * time.Hour},
		{"back-off from", c.Retry.BackoffMin, second},
		{"back-off to", c.Retry.BackoffMax, minute},
		{"row retention", c.Lifecycle.RowRetention, 30 * 24 * time.Hour},
		{"TTL", c.Lifecycle.TTLExtra, 7 * 24 * time.Hour},
		{"producer lateness", c.Lifecycle.ProducerLateness, 24 * time.Hour},
		{"redrive span", c.Lifecycle.RedriveSpan, 24 * time.Hour},
		{"continue", c.Flight.ContinueAfter, 240 * second},
		{"auto redrives", c.Retry.AutoRedrives, 3},
		{"waiting turns", c.Index.WaitingTurns, 3},
		{"payload by reference", c.Payload.ReferenceAbove, setting.Size(256 << 10)},
		{"lease with versions", c.Lease("search"), 13 * second},
		{"lease without versions", noVersions.Lease("search"), 43 * second},
		{"maxItemsPerTurn", c.Index.MaxItemsPerTurn, 2000},
		{"envelope depth", c.Payload.EnvelopeDepth, 4},
		{"burst spread", c.Queues.BurstSpread, 2 * second},
		{"expected rate", c.Queues.ExpectedRate, 500},
		{"maxReceiveCount", c.MaxReceiveCount(), 298},
		{"ambiguous retry", c.AmbiguousRetry("search"), 13 * second},
		{"prune", c.Lifecycle.PruneEvery, 5 * minute},
		{"dead letters", c.DeadLetters, DeadLettersQueue},
		{"table outage", c.TableOutage, TableOutageClosed},
		{"flight", c.Flight.Kind, FlightExpress},
		{"source", c.DefaultSource, "native"},
		{"collection", c.DefaultCollection, "content"},
		{"sink", c.DefaultSink, "search"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

func TestDefaultsAreNotShared(t *testing.T) {
	t.Parallel()
	a := Default()
	a.Collections["other"] = Collection{}
	delete(a.Sinks, "search")
	if b := Default(); len(b.Collections) != 1 || len(b.Sinks) != 1 {
		t.Errorf("got %v and %v, want one collection and one sink", b.Collections, b.Sinks)
	}
}

func TestCompleteFillsWhatFollows(t *testing.T) {
	t.Parallel()
	c := Default()
	c.DefaultSource, c.DefaultSink, c.DefaultCollection = "", "", ""
	c.Sources = map[string]Source{"publishing": {Kind: SourceGovuk}}
	c.Collections = map[string]Collection{"news": {}}
	c.Sinks = map[string]Sink{"os": {Kind: SinkOpenSearch, URL: "http://127.0.0.1:9200", Auth: Auth{Kind: AuthSigV4}}}
	c.Complete()
	if got := [3]string{c.DefaultSource, c.DefaultCollection, c.DefaultSink}; got != [3]string{
		"publishing", "news",
		"os",
	} {
		t.Errorf("defaults: got %v, want the only names", got)
	}
	source, sink := c.Sources["publishing"], c.Sinks["os"]
	if source.Class != ClassInt || source.NoVersion != NoVersionRefuse || len(source.Govuk.IgnoreTypes) != 23 ||
		len(source.Govuk.OverridePaths) != 7 {
		t.Errorf("source: got %+v, want GOV.UK's lists", source)
	}
	if sink.BulkDocuments != 500 || sink.Index != "{collection}" || sink.Auth.Service != "es" {
		t.Errorf("sink: got %+v, want the defaults", sink)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("got %v, want no fault", err)
	}
}

func TestCompleteChangesNothingThatIsSet(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Sources["govuk"] = Source{
		Kind: SourceGovuk, Class: ClassTime, NoVersion: NoVersionArrival,
		Govuk: Govuk{IgnoreTypes: []string{}, Locales: []string{"cy"}},
	}
	c.Sinks["other"] = Sink{Kind: SinkMemory, Index: "one", BulkDocuments: 7, BulkBytes: setting.MB}
	c.Complete()
	g := c.Sources["govuk"]
	if g.Class != ClassTime || g.NoVersion != NoVersionArrival || len(g.Govuk.IgnoreTypes) != 0 ||
		!reflect.DeepEqual(g.Govuk.Locales, []string{"cy"}) {
		t.Errorf("source: got %+v, want what was set", g)
	}
	if s := c.Sinks["other"]; s.Index != "one" || s.BulkDocuments != 7 || s.BulkBytes != setting.MB {
		t.Errorf("sink: got %+v, want what was set", s)
	}
	if c.DefaultSink != "search" {
		t.Errorf("default sink: got %q, want it kept", c.DefaultSink)
	}
}

func TestArrivalIsOfTheClassTime(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Sources["cms"] = Source{Kind: SourceNative, NoVersion: NoVersionArrival}
	c.Complete()
	if got := c.Sources["cms"].Class; got != ClassTime {
		t.Errorf("got %s, want %s", got, ClassTime)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("got %v, want no fault", err)
	}
}

// A function that does not link the kind of its sink must keep the lease that synth reckoned with.
func TestDeployedSettingsNeedNoKind(t *testing.T) {
	t.Parallel()
	c := Default()
	withoutVersions(&c)
	c.Complete()
	for _, versions := range []bool{false, true} {
		if versions {
			openSearch(&c)
			setSink(&c, func(s *Sink) { s.Options = opensearch.Settings{} })
		}
		text, err := json.Marshal(c.Resolve())
		if err != nil {
			t.Fatal(err)
		}
		unlinked := strings.ReplaceAll(string(text), `"kind":"opensearch"`, `"kind":"elsewhere"`)
		path := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(path, []byte(unlinked), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := LoadDeployed(path)
		if err != nil || got.Lease("search") != c.Lease("search") || got.Versions("search") != versions {
			t.Errorf("versions %t: got a lease of %s and %v, want %s", versions, got.Lease("search"), err, c.Lease("search"))
		}
		if _, err := LoadJSON(path); err == nil || !strings.Contains(err.Error(), "write one of bleve, memory, opensearch") {
			t.Errorf("strictly: got %v, want the kinds that there are", err)
		}
	}
}

func TestAnOptionOfAnotherKindIsNamed(t *testing.T) {
	t.Parallel()
	_, err := ParseJSON([]byte(`{"sinks": {"a": {"kind": "memory", "serverless": true, "colour": 1}}}`))
	for _, want := range []string{
		"line 1: sinks.a.serverless: is an option of the kind opensearch, but the sink's kind is memory: " +
			"remove it, or set sinks.a.kind to opensearch",
		"sinks.a.colour: there is no such setting: remove it",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
