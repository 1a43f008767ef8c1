// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
)

func TestThePartOfAMessage(t *testing.T) {
	t.Parallel()
	// In three parts, content#7 is in part 3, and news#7 and content#0007 are in part 2.
	of := func(doc event.DocID) event.Result { return event.Result{Event: event.Event{Doc: doc}} }
	skip := event.Result{Event: event.Event{Doc: "content#7"}, Skip: "locale de"}
	bad := func(doc event.DocID) event.Result { return event.Result{Invalid: &event.Invalid{Doc: doc}} }
	for name, tt := range map[string]struct {
		events []event.Result
		want   int
		split  string
	}{
		"one document":                  {[]event.Result{of("content#7")}, 3, ""},
		"two documents of a part":       {[]event.Result{of("news#7"), of("content#0007")}, 2, ""},
		"documents of two parts":        {[]event.Result{of("news#7"), of("content#7")}, 2, "news#7 is of part 2 and content#7 of part 3 of 3"},
		"nothing":                       {nil, 1, ""},
		"a skipped event":               {[]event.Result{skip}, 1, ""},
		"a skipped event and another":   {[]event.Result{skip, of("news#7")}, 2, ""},
		"an unknown document":           {[]event.Result{bad("")}, 1, ""},
		"an invalid event":              {[]event.Result{bad("content#7")}, 3, ""},
		"an unknown one and a document": {[]event.Result{bad(""), of("content#7")}, 3, ""},
	} {
		cfg := config.Default()
		cfg.Parts = config.Parts{Of: 3, This: 1}
		got, split := PartOf(&cfg, tt.events)
		if got != tt.want || (split != nil) != (tt.split != "") || split != nil && !strings.Contains(split.Error(), tt.split) {
			t.Errorf("%s: got part %d, %v, want %d, %q", name, got, split, tt.want, tt.split)
		}
		cfg.Parts = config.Parts{Of: 1}
		if got, split := PartOf(&cfg, tt.events); got != 1 || split != nil {
			t.Errorf("%s: without parts: got part %d, %v, want 1", name, got, split)
		}
	}
}
