// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/console"
	"github.com/lullhq/lull/internal/local/dev"
	"github.com/lullhq/lull/internal/local/server"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/commitfeed"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
	_ "github.com/lullhq/lull/source/builtin" // the kind native
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a stack without batching windows, and its server.
func serve(t *testing.T, change func(*config.Config)) (*dev.Engine, string) {
	t.Helper()
	cfg := config.Default()
	versions := true
	cfg.Sinks = map[string]config.Sink{"search": {Kind: "memory", Versions: &versions}}
	cfg.Debounce.Quiet, cfg.Queues.Live.Window = 0, 0
	change(&cfg)
	cfg.Complete()
	e, err := dev.New(dev.Options{
		Config: &cfg, Clock: clock.System{},
		Sinks: map[string]sink.Sink{"search": memorysink.New(clock.System{}, memorysink.Settings{Versions: true})},
	})
	if err != nil {
		t.Fatal(err)
	}
	options := console.Options{API: e.Operator(nil).API(), Config: &cfg, Clock: clock.System{}}
	s := httptest.NewServer(server.Handler(e, options))
	e.Start(t.Context())
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		e.Stop()
	})
	return e, s.URL
}

func TestTheFeedTellsCommitsAsTheyCome(t *testing.T) {
	t.Parallel()
	e, url := serve(t, func(c *config.Config) { c.CommitFeed = true })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/feed", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("got %s of %s", resp.Status, kind)
	}
	in := bufio.NewScanner(resp.Body)
	in.Scan() // the feed is open now
	body := `{"type":"doc.changed","subject":"<b>a","sequence":"7","data":{"title":"x"}}`
	if err := e.Publish(t.Context(), queue.Outgoing{Body: body}); err != nil {
		t.Fatal(err)
	}
	for in.Scan() {
		data, ok := strings.CutPrefix(in.Text(), "data: ")
		if !ok {
			continue
		}
		var told commitfeed.Event
		if err := json.Unmarshal([]byte(data), &told); err != nil || told.ID != "<b>a" || told.Version != "7" ||
			told.Operation != "put" || !told.Written || time.Since(told.At) > time.Hour {
			t.Errorf("got %s, %v", data, err)
		}
		return
	}
	t.Errorf("the feed ended: %v", in.Err())
}

func TestWithoutTheSettingThereIsNoFeed(t *testing.T) {
	t.Parallel()
	_, url := serve(t, func(*config.Config) {})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/feed", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("got %s, want that there is none", resp.Status)
	}
}
