// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
)

// engine is a real OpenSearch or Elasticsearch, with an index for this test.
type engine struct {
	*testing.T
	*opensearch.Sink
	url, name string
	shards    *memory.Shards
	cfg       config.Config
	notes     usecasetest.Notes
	fence     atomic.Int64
}

func openEngine(t *testing.T) *engine {
	t.Helper()
	url, product := os.Getenv("LULL_TEST_OPENSEARCH"), opensearch.OpenSearch
	if url == "" {
		url, product = os.Getenv("LULL_TEST_ELASTICSEARCH"), opensearch.Elasticsearch
	}
	if url == "" {
		t.Skip("neither LULL_TEST_OPENSEARCH nor LULL_TEST_ELASTICSEARCH is set: no server to test against")
	}
	url = strings.TrimRight(url, "/")
	e := &engine{T: t, url: url, name: "lull-rebuild-" + strings.ToLower(rand.Text()[:10]), shards: memory.NewShards()}
	e.cfg = config.Default()
	e.cfg.Sinks = map[string]config.Sink{"search": {Kind: "opensearch", URL: url, Index: e.name}}
	e.cfg.Complete()
	s, err := opensearch.New(opensearch.Options{
		URL: url, Index: e.name, Collections: []shard.Collection{"content"}, Versions: true, Product: product,
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Sink = s
	t.Cleanup(func() {
		e.ask(http.MethodDelete, "/"+e.name+"*", "")
		_ = s.Close()
	})
	return e
}

// ask sends the engine a request for which the sink has no method.
func (e *engine) ask(method, path, body string) map[string]any {
	e.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.Context()), time.Minute)
	defer cancel()
	req := usecasetest.Must(http.NewRequestWithContext(ctx, method, e.url+path, strings.NewReader(body)))(e)
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	usecasetest.OK(e, err)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil || resp.StatusCode >= 300 {
		e.Fatalf("%s %s: HTTP %d %s", method, path, resp.StatusCode, text)
	}
	return answer
}

// patient is a clock with short sleeps, but with time-outs in real time, because the engine is
// real.
type patient struct{ *clock.Fast }

func (patient) Deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func (e *engine) service() *rebuild.Service {
	return &rebuild.Service{
		Shards: e.shards, Sink: e.Sink, SinkName: "search", Config: &e.cfg, Clock: patient{clock.NewFast(20)},
		Journal: &e.notes, NewToken: func() shard.Token { return shard.Token(rand.Text()) },
	}
}

// write writes a version of a document as index does.
func (e *engine) write(id, document string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.Context()), time.Minute)
	defer cancel()
	rows, err := e.shards.Read(ctx, []shard.DocID{shard.HealthRow("search")}, shard.Consistent)
	if err != nil {
		return err
	}
	op := sink.Op{
		Doc: shard.DocID("content#" + id), Kind: shard.Put, Fence: shard.Fence(e.fence.Add(1)), At: time.Now(),
		Document: []byte(document),
	}
	if document == "" {
		op.Kind = shard.Delete
	}
	// If the switch deletes the old index, the engine refuses a write to it that is under way. index
	// then releases its lease and writes again.
	o := sink.Outcome{Kind: sink.Configuration}
	for n := 0; n < 10 && o.Kind == sink.Configuration; n++ {
		o = e.Write(ctx, []sink.Op{op})[0]
	}
	if o.Kind != sink.Applied {
		return fmt.Errorf("write %s: %s: %s", id, o.Kind, o.Reason)
	}
	if row := rows[0]; row.RebuildAt != 0 {
		if o := e.Into("content", row.RebuildInto).Write(ctx, []sink.Op{op})[0]; o.Kind != sink.Applied &&
			o.Kind != sink.Newer {
			_, err = e.shards.Write(ctx, shard.Miss("search", row.RebuildAt))
		}
	}
	return err
}

func (e *engine) seed(n int) {
	e.Helper()
	for i := range n {
		usecasetest.OK(e, e.write(fmt.Sprint("d", i), fmt.Sprintf(`{"n":"%d"}`, i)))
	}
	e.ask(http.MethodPost, "/"+e.name+"/_refresh", "")
}

const (
	mapping = `{"properties":{"n":{"type":"keyword"}}}`
	numbers = `{"properties":{"n":{"type":"integer"}}}`
)

func (e *engine) start(order rebuild.Order) (rebuild.Progress, error) {
	order.Collection, order.By, order.Keep = "content", "ann", 1
	return e.startWith(e.service(), order)
}

// The first rebuild begins with an index that has the name itself, and deletes this index. At the
// second rebuild the name is an alias, so no search may fail.
func TestARealIndexIsRebuiltBesideWritersAndReaders(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	const documents = 300
	e.seed(documents)
	stop, ended := make(chan struct{}), make(chan error, 2)
	failed := errors.New("a helper has failed the test")
	go func() { // a writer
		why := failed
		defer func() { ended <- why }()
		for i := 0; ; i++ {
			select {
			case <-stop:
				why = nil
				return
			default:
			}
			err := e.write(fmt.Sprint("d", i%documents), fmt.Sprintf(`{"n":"%d"}`, 1000+i))
			if i%3 == 0 && err == nil {
				err = errors.Join(e.write(fmt.Sprint("x", i%7), `{"n":"x"}`), e.write(fmt.Sprint("x", (i+3)%7), ""))
			}
			if err != nil {
				why = err
				return
			}
		}
	}()
	if _, err := e.start(rebuild.Order{Mapping: []byte(mapping)}); !errors.Is(err, sink.ErrUnfit) {
		t.Errorf("an index without an alias: %v, want it to ask for --drop-old", err)
	}
	first := usecasetest.Must(e.start(rebuild.Order{Mapping: []byte(mapping), Drop: true}))(t)
	go func() { // a reader that counts the documents that are never deleted
		why := failed
		defer func() { ended <- why }()
		for reads := 0; ; reads++ {
			select {
			case <-stop:
				e.Logf("%d reads", reads)
				why = nil
				return
			default:
			}
			got := e.ask(http.MethodPost, "/"+e.name+"/_count",
				`{"query":{"bool":{"must_not":{"term":{"n.keyword":"x"}},
				"filter":{"bool":{"must_not":{"term":{"n":"x"}}}}}}}`)
			if n, _ := got["count"].(float64); n < documents {
				why = fmt.Errorf("read %d finds %v documents, want %d", reads, n, documents)
				return
			}
		}
	}()
	time.Sleep(1100 * time.Millisecond) // the name of an index has seconds
	second, err := e.start(rebuild.Order{Settings: []byte(`{"number_of_replicas":0}`)})
	close(stop)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	has := e.ask(http.MethodGet, "/"+e.name+"/_mapping", "")
	if text := fmt.Sprint(has[second.New]); len(has) != 1 || !strings.Contains(text, "keyword") ||
		!strings.Contains(text, "order_key") {
		t.Errorf("the mapping is %v", has)
	}
	if at, err := e.Standing(t.Context(), "content"); err != nil || at.Index != second.New || !at.Alias {
		t.Errorf("%+v, %v", at, err)
	}
	if earlier, err := e.Earlier(t.Context(), "content"); err != nil ||
		fmt.Sprint(earlier) != fmt.Sprint([]string{first.New}) {
		t.Errorf("%v, %v: want %s to be kept", earlier, err, first.New)
	}
	t.Logf("first %d passes, %d repaired, %d missed; second %d, %d, %d", first.Passes, first.Repaired, first.Missed,
		second.Passes, second.Repaired, second.Missed)
}

func TestARealMappingThatRefusesDocumentsNamesThem(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	e.seed(20)
	for _, id := range []string{"d3", "d7"} {
		usecasetest.OK(t, e.write(id, `{"n":"secret"}`))
	}
	e.ask(http.MethodPost, "/"+e.name+"/_refresh", "")
	p, err := e.start(rebuild.Order{Mapping: []byte(numbers), Drop: true})
	if !errors.Is(err, rebuild.ErrRefused) || p.Left == 0 || strings.Contains(fmt.Sprint(p, err), "secret") {
		t.Fatalf("%+v, %v; want documents that are refused, without their content", p, err)
	}
	two := 2
	if p, err = e.resume(e.service(), "bob", &two); err != nil || p.Left != 2 ||
		p.Phase != rebuild.Done {
		t.Fatalf("%+v, %v", p, err)
	}
	e.ask(http.MethodPost, "/"+e.name+"/_refresh", "")
	if got := e.ask(http.MethodGet, "/"+e.name+"/_count", ""); got["count"] != 18. {
		t.Errorf("%v documents, want 18", got["count"])
	}
}

func TestARealDryRunSaysWhetherTheEngineTakesAMapping(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	e.seed(1)
	for text, fails := range map[string]bool{
		mapping: false, `{"properties":{"n":{"type":"nonsense"}}}`: true,
		`{"properties":{"n":{"type":"text","analyzer":"missing"}}}`: true,
	} {
		_, err := e.start(rebuild.Order{Mapping: []byte(text), Drop: true, DryRun: true})
		if (err != nil) != fails || err != nil && !errors.Is(err, sink.ErrUnfit) {
			t.Errorf("%s: got %v", text, err)
		}
	}
	if all := e.ask(http.MethodGet, "/"+e.name+"*", ""); len(all) != 1 {
		t.Errorf("the engine has %d indices, want only the one in use", len(all))
	}
}

func TestARealIndexThatIsBlockedStopsARebuildUntilItIsResumed(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	e.seed(20)
	block := rebuild.Order{Settings: []byte(`{"index.blocks.write":true}`), Drop: true}
	p, err := e.start(block)
	if err == nil || p.Phase == rebuild.Done || !strings.Contains(err.Error(), "accepts no documents") {
		t.Fatalf("got %+v, %v; want an error that names the block", p, err)
	}
	if err := e.write("d1", `{"n":"live"}`); err != nil { // live traffic continues
		t.Fatal(err)
	}
	e.ask(http.MethodPut, "/"+p.New+"/_settings", `{"index.blocks.write":null}`)
	if p, err = e.resume(e.service(), "bob", nil); err != nil || p.Phase != rebuild.Done {
		t.Fatalf("%+v, %v", p, err)
	}
	got, found, err := e.Get(t.Context(), "content#d1")
	if err != nil || !found || string(got.Document) != `{"n":"live"}` {
		t.Errorf("%s, %t, %v", got.Document, found, err)
	}
}

func TestARealRebuildThatIsAbortedLeavesNothing(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	e.seed(20)
	p, err := e.start(rebuild.Order{Settings: []byte(`{"index.blocks.write":true}`), Drop: true})
	if err == nil {
		t.Fatalf("%+v; want it to stop at the block", p)
	}
	if p, err = e.abort(e.service(), "bob"); err != nil || p.Phase != rebuild.Aborted {
		t.Fatalf("%+v, %v", p, err)
	}
	if has := e.ask(http.MethodGet, "/"+e.name+"*/_alias", ""); len(has) != 1 || has[e.name] == nil {
		t.Errorf("the engine still has %v, want only %s", has, e.name)
	}
}

func TestARealAliasOfSeveralIndicesIsRefused(t *testing.T) {
	t.Parallel()
	e := openEngine(t)
	for _, index := range []string{"-a", "-b"} {
		e.ask(http.MethodPut, "/"+e.name+index, `{"aliases":{"`+e.name+`":{}}}`)
	}
	_, err := e.start(rebuild.Order{Mapping: []byte(mapping)})
	if !errors.Is(err, sink.ErrUnfit) || !strings.Contains(err.Error(), "several indices") {
		t.Errorf("%v, want the alias to be refused", err)
	}
}
