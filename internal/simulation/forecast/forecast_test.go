// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/simulation/cost"
	"github.com/lullhq/lull/internal/simulation/sim"
	_ "github.com/lullhq/lull/sink/memorysink"
	_ "github.com/lullhq/lull/source/builtin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// settings returns the default settings with a kind of sink that this program contains.
func settings() *config.Config {
	c := config.Default()
	c.Sinks = map[string]config.Sink{"search": {Kind: "memory"}}
	c.Complete()
	return &c
}

func minutes(n int) Load {
	l := Steady()
	l.Rate, l.Lasting = 1, Span(time.Duration(n)*time.Minute)
	return l
}

func TestFaultsOfALoadAreNamedAllAtOnce(t *testing.T) {
	t.Parallel()
	for fields, l := range map[string]Load{
		"":                                minutes(1),
		"load for":                        {Rate: -1, Burst: 1, Documents: 1},
		"burst documents":                 {Rate: 1, Burst: 0, Documents: 0, Lasting: 1},
		"load burst spread documents for": {Rate: 1e9, Burst: 1e6, Spread: -1, Documents: 1e9, Lasting: -5},
		"spread":                          {Rate: 1, Burst: 1, Spread: Span(time.Hour), Documents: 1, Lasting: 1},
		"sink-takes sink-throttles":       {1, 1, 0, 1, 1, "", Strain{Takes: -1, Throttles: "x"}},
		"surge":                           {Rate: 1, Burst: 1, Documents: 1, Lasting: 1, Surge: "NaN@0s"},
		"for surge":                       {Rate: 1, Burst: 1, Documents: 1, Surge: "2@1m"},
		"sink-down":                       {Rate: 1, Burst: 1, Documents: 1, Lasting: 1, Strain: Strain{Down: "5m-1m"}},
		"for sink-takes sink-down":        {1, 1, 0, 1, 0, "", Strain{Takes: -1, Down: "<script>"}},
	} {
		_, strained := l.Sim(time.Duration(l.Lasting))
		var got []string
		for _, err := range []error{l.Validate(), strained} {
			for _, f := range Faults(err) {
				got = append(got, f.Field)
				if f.Problem == "" || f.Value == "" || !strings.Contains(f.Error(), "--"+f.Field) {
					t.Errorf("%+v names neither its value nor the fix", f)
				}
			}
		}
		if want := strings.Fields(fields); !slices.Equal(got, want) {
			t.Errorf("got faults of %v, want %v", got, want)
		}
	}
}

func TestALoadIsWrittenLikeTheFlags(t *testing.T) {
	t.Parallel()
	var l Load
	text := `{"load":2.5,"burst":4,"spread":"1s","documents":7,"for":"1h30m0s","sink-down":"5m-10m","sink-takes":20}`
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(l); err != nil || string(again) != text {
		t.Errorf("%s, %v, want %s", again, err, text)
	}
	if err := json.Unmarshal([]byte(`{"for":"soon"}`), &l); err == nil || !strings.Contains(err.Error(), "1m30s") {
		t.Errorf("got %v, want what a duration looks like", err)
	}
}

// TestBurstsAreWrittenOnce: larger bursts reduce the number of writes, but not the number of
// events. The reported progress ends at 1.
func TestBurstsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	for _, burst := range []int{1, 6} {
		l := minutes(10)
		l.Burst, l.Documents = burst, 100_000
		var shares []float64
		r, err := Run(t.Context(), sim.Options{
			Config: settings(), Seed: 1, Upstream: l.Upstream(1), Pollers: cost.FirstPollers,
		}, func(share float64) { shares = append(shares, share) })
		if err != nil || len(r.Violations) > 0 {
			t.Fatalf("%v %v", err, r.Violations)
		}
		if n := r.Counts.Events; n < 450 || n > 750 || int64(n) > r.Counts.Applied*int64(burst)+int64(burst) {
			t.Errorf("%d events in bursts of %d: %d writes", n, burst, r.Counts.Applied)
		}
		if len(shares) < 20 || len(shares) > 60 || !slices.IsSorted(shares) || shares[len(shares)-1] < 0.9 {
			t.Errorf("progress %v", shares)
		}
	}
}

func TestACancelledRunEndsAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := sim.Options{Config: settings(), Upstream: minutes(60).Upstream(1), Pollers: 1}
	r, err := Run(ctx, o, func(share float64) {
		if share > 0.1 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !r.Stopped || r.Virtual > 10*time.Minute {
		t.Errorf("%v after %s of an hour", err, r.Virtual)
	}
}
