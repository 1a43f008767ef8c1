// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
)

func TestTheTailIsAskedWithTheFilters(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.refused(http.StatusNotFound, "nothing at", "/console/tail", "") // a deployed stack keeps no decisions
	var asked operate.TailQuery
	s.options.Tail = func(q operate.TailQuery) (operate.TailPage, error) {
		asked = q
		_, err := q.Size()
		return operate.TailPage{Lines: []operate.TailLine{{Number: 8, Doc: "content#<b>"}}, Next: 9, Words: []string{"HOLD", "PARK"}}, err
	}
	var got operate.TailPage
	s.into(&got, "/console/tail?after=7&sink=search&collection=news&word=HOLD&contains=+%3Cb%3E+&limit=500", "")
	want := operate.TailQuery{After: 7, Sink: "search", Collection: "news", Word: "HOLD", Contains: "<b>", Limit: 500}
	if asked != want || got.Next != 9 || got.Lines[0].Doc != "content#<b>" {
		t.Errorf("asked %+v, want %+v; got %+v", asked, want, got)
	}
	var about struct {
		Can   map[string]bool
		Sinks []string
	}
	if s.into(&about, "/console/about", ""); !about.Can["tail"] || len(about.Sinks) != 1 {
		t.Errorf("about says %+v", about)
	}
	for query, text := range map[string]string{
		"after=-1": "after: use the number", "after=1e3": "after", "after=99999999999999999999": "after",
		"after=%3Cscript%3E": "after", "limit=501": "limit", "limit=0": "limit", "word=hold": "word: use one of HOLD, PARK",
		"contains=" + strings.Repeat("x", maxContains+1): "contains: at most",
	} {
		s.refused(http.StatusBadRequest, text, "/console/tail?"+query, "")
	}
}
