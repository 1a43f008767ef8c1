package sim

import (
	"errors"
	"strings"
	"testing"
	"time"

	docevent "github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/index"
)

// believing is index that asks nothing of what is fetched but that it is there.
type believing struct{ index.Source }

func (b believing) Document(m docevent.Message, e docevent.Event) ([]byte, error) {
	doc, err := b.Source.Document(m, e)
	var stale *docevent.Invalid
	if errors.As(err, &stale) && stale.Stale {
		return []byte(e.Data), nil
	}
	return doc, err
}

// TestBrokenWaysToFetchAreFound takes away one rule after the other. Each falls for a promise of
// its own.
func TestBrokenWaysToFetchAreFound(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(h *index.Handler)
		rule   string
	}{
		"an answer that is older than its event is written": {
			func(h *index.Handler) { h.Sources = believing{h.Sources} }, "no content is older than its version",
		},
		"what is not there is deleted at once": {
			func(h *index.Handler) {
				cfg := *h.Config
				cfg.Payload.MissingWait = -time.Hour
				h.Config = &cfg
			}, "the sink holds what its source shows",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 200; seed++ {
				for _, v := range fetching(t, seed, Hooks{Index: tt.change}).Run().Violations {
					if strings.Contains(v.Rule, tt.rule) {
						t.Logf("seed %d: %s", seed, v)
						return
					}
				}
			}
			t.Errorf("no seed finds it: want %q", tt.rule)
		})
	}
}
