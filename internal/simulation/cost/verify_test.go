// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
)

// A verification is priced by its documents and its rate. It never takes more than the whole month.
func TestAVerificationIsPriced(t *testing.T) {
	t.Parallel()
	c := defaults()
	load := nothing()
	load.Documents = 360_000
	if items := verified(c, load); items != nil {
		t.Errorf("without the setting: got %+v", items)
	}
	c.Collections = map[string]config.Collection{"content": {
		Verify: &config.Verify{Every: 24 * time.Hour, Requests: 100, MaxRemovals: 100},
	}}
	units := func(what string) float64 {
		for _, i := range verified(c, load) {
			if i.What == what {
				return i.Count
			}
		}
		t.Fatalf("there is no line %s", what)
		return 0
	}
	// An hour a day, and the runs that find nothing due, with a quarter of a GB.
	if got, want := units("GB-seconds of job"), (30*3600+8640*0.2)/4; got != want {
		t.Errorf("got %v GB-seconds, want %v", got, want)
	}
	if got := units("read units"); got < 30*360_000 || got > 2*30*360_000 {
		t.Errorf("got %v read units for 360,000 documents each day", got)
	}
	c.Collections["content"].Verify.Requests = 1 // 100 hours of each day
	if got, most := units("GB-seconds of job"), (30*86_400+8640*0.2)/4; got != most {
		t.Errorf("got %v GB-seconds, want the whole month: %v", got, most)
	}
	if got := units("invocations of job"); got != 8640 {
		t.Errorf("got %v invocations, want one each five minutes", got)
	}
}
