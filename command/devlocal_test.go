// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

// changed returns a notification of S3 about an object of the bucket shop.
func changed(what, key, sequencer string) string {
	return fmt.Sprintf(`{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"eu-west-1",`+
		`"eventTime":"2026-01-01T00:00:00.000Z","eventName":%q,"s3":{"s3SchemaVersion":"1.0",`+
		`"bucket":{"name":"shop","arn":"arn:aws:s3:::shop"},"object":{"key":%q,"sequencer":%q}}}]}`, what, key, sequencer)
}

// says checks that a run printed these texts.
func (p played) says(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.out, text) {
			t.Errorf("said %q, want %q in it", p.out, text)
		}
	}
}

func TestTheDeployedSettingsRunWithoutCredentials(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	save(t, filepath.Join(data+"-buckets", "newsroom-bodies/published/7.json"), `{"title":"Budget","body":{"text":"long"}}`)
	save(t, filepath.Join(data+"-buckets", "newsroom-bodies/drafts/8.json"), `{"title":"Secret"}`)
	news := func(id, at, data string) string {
		return fmt.Sprintf(`{"attributes":{"lull-source":"newsroom"},"body":{"Type":"Notification",`+
			`"MessageId":"m","TopicArn":"arn:aws:sns:eu-west-1:111122223333:newsroom","Message":%q,`+
			`"Timestamp":"2026-01-01T00:00:00.000Z"}}`,
			fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":%q,%s}`, id, at, data))
	}
	p := play(t, strings.Join([]string{
		news("7", "2026-01-01T00:00:00Z", `"dataref":"s3://newsroom-bodies/published/7.json"`),
		news("8", "2026-01-01T00:00:00Z", `"dataref":"s3://newsroom-bodies/drafts/8.json"`),
		news("9", "2026-01-01T00:00:00Z", `"dataref":"s3://newsroom-bodies/published/../drafts/8.json"`),
		news("10", "2026-01-01T00:00:00Z", `"data":{"title":"In brief","internal":"x"}`),
		`{"content_id":"5b1d5f0a-2f6c-4d3e-9a51-0c2f6f1b2c3d","locale":"en","document_type":"guide",` +
			`"base_path":"/vat","title":"VAT","payload_version":3,"update_type":"major"}`,
	}, "\n"), "--events", "-", "--local", "--config", "../docs/lull.yaml", "--buckets", data+"-buckets", "--data", data)
	p.says(t, "sink search: opensearch https://search.example.org -> bleve in "+data+", requests are not signed",
		"s3://newsroom-bodies/KEY -> "+filepath.Join(data+"-buckets", "newsroom-bodies", "KEY"),
		"without effect here: queues.expectedRate")
	got := map[string]string{}
	for _, d := range p.dump {
		got[d.Collection+"#"+d.ID] = string(d.Document)
	}
	for key, want := range map[string]string{
		"news#7": `{"title":"Budget","body":{"text":"long"}}`, "news#10": `{"title":"In brief"}`,
	} {
		if got[key] != want {
			t.Errorf("%s: got %s, want %s, which is the projection", key, got[key], want)
		}
		delete(got, key)
	}
	if len(got) != 1 || len(p.report.DeadLetters) != 2 {
		t.Errorf(
			"got %v and %v, want one page, and dead letters for references outside payload.allow",
			got,
			p.report.DeadLetters,
		)
	}
}

func TestEverySinkHasAnIndexOfItsOwn(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	settings := write(t, "collections: {mine: {sink: b}, pages: {}}", "defaultCollection: pages", "defaultSink: a",
		"table: {name: shards}", "sinks:",
		`  a: {kind: opensearch, url: "https://a.example.org", index: "a-{collection}", liveQueue: theirs,`+
			` auth: {kind: basic, secretARN: "arn:aws:secretsmanager:eu-west-1:111122223333:secret:x-AbCdEf"}}`,
		`  b: {kind: opensearch, url: "https://b.example.org", index: "b-{collection}", versions: false}`)
	p := play(t, put("1", "1", "{}")+"\n"+
		`{"type":"doc.changed","collection":"mine","subject":"2","sequence":"1","data":{}}`,
		"--events", "-", "--local", "--config", settings, "--data", data)
	p.says(t, "sink a: opensearch https://a.example.org -> bleve in "+filepath.Join(data, "a")+
		", no password is read", "sink b: opensearch https://b.example.org -> bleve in "+filepath.Join(data, "b")+"\n",
		"without effect here: sinks.a.liveQueue, table")
	if got, want := p.versions(), map[string]string{"pages#1": "1", "mine#2": "1"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// If an object was removed, its delete is sent after its put.
func TestObjectsInAFolderAreIndexedByTheNotificationsOfS3(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := write(t, "sources: {s3: {kind: s3, collection: products, s3: {stripPrefix: p/, stripSuffix: .json}}}",
		`sinks: {search: {kind: opensearch, url: "https://search.example.org", index: "shop-{collection}"}}`,
		"payload: {allow: [{bucket: shop, prefix: p/}]}")
	save(t, filepath.Join(dir, "shop/p/chair.json"), `{"title":"Chair"}`)
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "shop", "p", "evil.json")); err != nil {
		t.Fatal(err)
	}
	p := play(t, strings.Join([]string{
		changed("ObjectCreated:Put", "p/chair.json", "0A01"),
		changed("ObjectCreated:Put", "p/gone.json", "0A01"),
		`{"after_ms":20000,"body":` + changed("ObjectRemoved:Delete", "p/gone.json", "0A02") + `}`,
		changed("ObjectCreated:Put", "p/evil.json", "0A01"),
	}, "\n"), "--events", "-", "--local", "--config", settings, "--buckets", dir)
	if got, want := p.versions(), map[string]string{"products#shop/chair": "0A01"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if l := p.report.DeadLetters; len(l) != 1 || l[0].Key != "products#shop/evil" || l[0].Reason != "payload" {
		t.Errorf("dead letters %v, want only the link that leads out of the folder", l)
	}
}

func TestASinkIsChosenByAnAddressOrAKind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sinkFlag{
		"http://127.0.0.1:9200":               {url: "http://127.0.0.1:9200", name: "", text: "opensearch"},
		"postgres://127.0.0.1/search":         {url: "postgres://127.0.0.1/search", text: "postgres"},
		"b=postgres:postgresql://db/search":   {url: "postgresql://db/search", name: "b", text: "postgres"},
		"opensearch:https://s.example.org/x":  {url: "https://s.example.org/x", text: "opensearch"},
		"b=http://127.0.0.1:9200/?a=b":        {url: "http://127.0.0.1:9200/?a=b", name: "b", text: "opensearch"},
		"b=opensearch:http://127.0.0.1:9200/": {url: "http://127.0.0.1:9200/", name: "b", text: "opensearch"},
		"bleve":                               {text: "bleve"},
		"b=bleve":                             {name: "b", text: "bleve"},
	} {
		got, err := parseSink(text)
		if err != nil || got.name != want.name || got.url != want.url || got.kind.Name != want.text {
			t.Errorf("%s: got %+v, error %v, want %+v", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"solr:http://127.0.0.1:1": `no kind "solr"`, "ftp://x": "http://", "elsewhere": "not an address", "": "not an address",
		"opensearch:": "needs an address", "opensearch": "needs an address", "bleve:/tmp/x": "--data", "=http://x": "before the =",
		"b=": "not an address", "http:": "no kind", "http://": "needs an address",
	} {
		if _, err := parseSink(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want %q", text, err, says)
		}
	}
	if _, err := parseSink("ftp://u:secret@x"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want it without the password", err)
	}
}

func TestOneOfSeveralSinksMayBeElsewhere(t *testing.T) {
	t.Parallel()
	settings := write(t, "collections: {mine: {sink: b}, pages: {}}", "defaultCollection: pages", "defaultSink: a",
		`sinks: {a: {kind: opensearch, url: "https://a.example.org", index: "a-{collection}"},`+
			` b: {kind: opensearch, url: "https://b.example.org", index: "b-{collection}"}}`)
	in := put("1", "1", "{}") + "\n" +
		`{"type":"doc.changed","collection":"mine","subject":"2","sequence":"1","data":{}}`
	p := play(t, in, "--events", "-", "--config", settings, "--sink", "a=bleve", "--sink", "b=bleve")
	if got, want := p.versions(), map[string]string{"pages#1": "1", "mine#2": "1"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	nobody := "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"another sink":       {[]string{"--sink", "c=bleve"}, []string{"--sink c=bleve", `no sink "c"`, "a, b"}},
		"one twice":          {[]string{"--sink", "a=bleve", "--sink", "a=bleve"}, []string{"another --sink names sink a already"}},
		"two without a name": {[]string{"--sink", "bleve", "--sink", "b=bleve"}, []string{"name the sink that each replaces"}},
		"beside --local":     {[]string{"--local", "--sink", "b=" + nobody}, []string{"--sink b=" + nobody, "refused"}},
		"nobody there":       {[]string{"--sink", "a=bleve", "--sink", "b=" + nobody}, []string{"--sink b=" + nobody, "refused"}},
	} {
		lull(t, "", append([]string{"dev", "--config", settings, "--exit-when-idle"}, c.args...)...).
			want(t, name, exitUsage, c.says...)
	}
}

// A sink that replaces another sink keeps its ceilings of rate and of concurrency.
func TestWhatStandsInForASinkKeepsItsCeilings(t *testing.T) {
	t.Parallel()
	instead := func(text string) func(*config.Config) error {
		f := devFlags{sinks: []string{text}}
		if err := f.parseSinks(); err != nil {
			t.Fatal(err)
		}
		return f.chooseSinks
	}
	for name, apply := range map[string]func(*config.Config) error{
		"--local":       func(cfg *config.Config) error { _, err := localize(cfg, devFlags{}); return err },
		"--sink b=URL":  instead("b=bleve"),
		"--sink URL":    instead("bleve"),
		"nothing of it": func(*config.Config) error { return nil },
	} {
		cfg := config.Default()
		elsewhere := config.Sink{Kind: "opensearch", URL: "https://s.example.org", Index: "lull-{collection}"}
		limited := elsewhere
		limited.URL = "https://b.example.org"
		limited.MaxDocumentsPerSecond, limited.MaxConcurrency = new(setting.OncePerSecond/2), new(2)
		cfg.Sinks, cfg.DefaultSink = map[string]config.Sink{"a": elsewhere, "b": limited}, "a"
		cfg.Collections["content"] = config.Collection{Sinks: []string{"a", "b"}}
		cfg.Complete()
		if err := apply(&cfg); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cfg.Complete()
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		b, there := cfg.Sinks["b"]
		if rate, most := config.Ceiling(b), config.IndexConcurrency(b); there && (rate != 500 || most != 2) {
			t.Errorf("%s: ceilings %d and %d, want 500 and 2", name, rate, most)
		}
	}
}

// The test sets every field of a sink, so that a new setting cannot be forgotten.
func TestWhatStandsInForASinkKeepsEverySettingOfIt(t *testing.T) {
	t.Parallel()
	was := config.Sink{Kind: "opensearch", URL: "https://search.example.org"}
	for field, v := range reflect.ValueOf(&was).Elem().Fields() {
		switch at := v.Addr().Interface().(type) {
		case **bool:
			*at = new(bool) // a sink that does not compare versions
		case **time.Duration:
			*at = new(45 * time.Second)
		case **setting.Rate:
			*at = new(setting.OncePerSecond * 3)
		case **int:
			*at = new(3)
		case *sink.Unchanged:
			*at = sink.Keep
		case *int:
			*at = 7
		case *setting.Size:
			*at = 777 * setting.KB
		case *string:
			if *at == "" {
				*at = "of-" + strings.ToLower(field.Name)
			}
		case *config.Auth:
			*at = config.Auth{Kind: config.AuthBasic, UserEnv: "USER", PasswordEnv: "PASSWORD"}
		case *any: // the options of the kind
		default:
			t.Fatalf("field %s: set it here, and decide whether a sink with another address keeps it", field.Name)
		}
	}
	flag, err := parseSink("search=bleve")
	if err != nil {
		t.Fatal(err)
	}
	other, err := parseSink("search=opensearch:http://127.0.0.1:9200")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]devFlags{
		"--local":                {local: true},
		"--sink search=bleve":    {chosen: map[string]sinkFlag{"search": flag}},
		"--sink search=HTTP URL": {chosen: map[string]sinkFlag{"search": other}},
	} {
		cfg := config.Default()
		cfg.Sinks, cfg.DefaultSink = map[string]config.Sink{"search": was}, "search"
		cfg.Complete()
		want := reflect.ValueOf(cfg.Sinks["search"])
		apply := f.chooseSinks
		if f.local {
			apply = func(cfg *config.Config) error { _, err := localize(cfg, f); return err }
		}
		if err := apply(&cfg); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for field, got := range reflect.ValueOf(cfg.Sinks["search"]).Fields() {
			switch field.Name {
			case "Kind", "URL", "Options":
			case "Auth": // the credentials belong to the old address
				if a, _ := got.Interface().(config.Auth); a.UserEnv != "" || a.PasswordEnv != "" {
					t.Errorf("%s: auth %+v goes to another address", name, a)
				}
			default:
				if want := want.FieldByIndex(field.Index).Interface(); !reflect.DeepEqual(got.Interface(), want) {
					t.Errorf("%s: %s is %v, want %v", name, field.Name, got.Interface(), want)
				}
			}
		}
	}
}

// With --notify each file is a document, and removing the file deletes the document.
func TestFilesInTheFolderOfBucketsAreDocuments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := write(t, "sources: {s3: {kind: s3, collection: products}}", "payload: {allow: [{bucket: shop}]}")
	save(t, filepath.Join(dir, "shop/chair.json"), `{"title":"Chair"}`)
	s := start(t, nil, "--events", write(t), "--config", settings, "--buckets", dir, "--notify", "--speed", "20", "-v")
	s.out.await(t, `SETTLE +products#shop/chair.json`)
	save(t, filepath.Join(dir, "shop/chair.json"), `{"title":"Blue chair"}`)
	s.out.await(t, `SETTLE +products#shop/chair.json(?s:.*)SETTLE +products#shop/chair.json`)
	s.ask("get", "products#shop/chair.json").want(t, "get", exitOK, "Blue chair")
	if err := os.Remove(filepath.Join(dir, "shop", "chair.json")); err != nil {
		t.Fatal(err)
	}
	s.out.await(t, `SETTLE +products#shop/chair.json.* deleted from the sink`)
}

func TestLocalSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	lull(t, "", "dev", "--notify").want(t, "no source", exitUsage, "--notify", "kind s3")
	lull(t, "", "dev", "--notify", "--config", write(t, "sources: {s3: {kind: s3}}")).
		want(t, "no folder", exitUsage, "--notify", "--buckets DIR")
	lull(t, "", "dev", "--local").want(t, "no settings", exitUsage, "--local", "--config lull.yaml")
	lull(t, "", "dev", "--local", "--config", "../docs/lull.yaml", "--sink", "http://127.0.0.1:1").
		want(t, "an address", exitUsage, "--local and --sink")
	lull(t, "", "dev", "--buckets", write(t, "x")).want(t, "a file", exitUsage, "--buckets")
	lull(t, "", "dev", "--local", "--config", write(t, "sinks: {search: {kind: solr}}")).
		want(t, "a kind of one's own", exitUsage, "solr", "import the package")
}
