// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/sink"
)

// A deploy says what the operator of a sink has to do, if only the settings name its index.
func TestADeployNamesTheDutyOfWhoNamesTheIndex(t *testing.T) {
	t.Parallel()
	keep := sink.Keep
	for name, c := range map[string]struct {
		sink   config.Sink
		pages  *sink.Unchanged
		notice bool
	}{
		"a webhook":                   {config.Sink{Kind: "webhook", Unchanged: keep, Generation: "one"}, nil, true},
		"a collection of a webhook":   {config.Sink{Kind: "webhook", Generation: "one"}, &keep, true},
		"a webhook that is written":   {config.Sink{Kind: "webhook", Generation: "one"}, nil, false},
		"a sink that knows its index": {config.Sink{Kind: "opensearch", Unchanged: keep, Generation: "one"}, nil, false},
		"a webhook that nobody names": {config.Sink{Kind: "webhook", Unchanged: keep}, nil, false}, // refused by the settings
		"Typesense":                   {config.Sink{Kind: "typesense", Unchanged: keep, Generation: "one"}, nil, true},
	} {
		cfg := config.Default()
		cfg.Sinks = map[string]config.Sink{"search": c.sink}
		cfg.DefaultSink = "search"
		cfg.Collections = map[string]config.Collection{"pages": {Unchanged: c.pages}}
		if got := trustNotice(&cfg, "search"); (got != "") != c.notice ||
			c.notice && !strings.Contains(got, "change sinks.search.generation") {
			t.Errorf("%s: got %q, want a notice: %t", name, got, c.notice)
		}
	}
}
