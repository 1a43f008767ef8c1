// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// fresh writes a document to the sink, and commits it as version 1.
func (s *stack) fresh(doc shard.DocID) {
	s.Helper()
	s.commit(doc)
	rows := usecasetest.Must(s.Shards.Read(s.Context(), []shard.DocID{doc}, shard.Consistent))(s)
	op := sink.Op{
		Doc: doc, Kind: shard.Put, Fence: 1, Version: "1", Key: rows[0].Committed, At: time.Now(),
		Document: []byte(`{}`),
	}
	if out := s.index.Write(s.Context(), []sink.Op{op}); out[0].Kind != sink.Applied {
		s.Fatal(out)
	}
}

func TestARedriveIsFollowedToItsResult(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	began := time.Now()
	again := s.park(event("again", 1), deadletter.Contract, began.Add(time.Second))
	old := s.park(event("old", 1), deadletter.Contract, began.Add(-time.Hour))
	s.fresh("content#written")
	sent := fmt.Sprintf(`{"id":%q,"key":"content#again","at":%q},{"id":%q,"key":"content#old","at":%q},`+
		`{"id":"gone1","key":"content#written","at":%[2]q},{"id":"gone2","at":%[2]q}`,
		again, began.Format(time.RFC3339Nano), old, began.Format(time.RFC3339Nano))
	var got struct{ Results []result }
	s.into(&got, "/console/dead/results", `{"sent":[`+sent+`]}`)
	var states []string
	for _, r := range got.Results {
		states = append(states, string(r.State))
	}
	if want := "dead again, waits, fresh, gone"; strings.Join(states, ", ") != want {
		t.Errorf("got %+v, want %s", got.Results, want)
	}
	// The rows decide before lull removes the dead letter, also if it was parked without a version.
	done := s.park(event("written", 0), deadletter.Contract, began)
	keyless := deadletter.New(queue.Message{ID: "m", Body: event("written", 0), Sent: began}, deadletter.Contract, "",
		"", "", 0, began)
	keyless.Sink, keyless.Lane = "search", "live"
	usecasetest.Must(s.rig.Letters.Park(t.Context(), keyless))(t)
	for _, id := range []string{done, keyless.ID} {
		usecasetest.OK(t, s.rig.Letters.MarkRedriven(t.Context(), id, began, false))
	}
	var decided struct{ Results []result }
	s.into(&decided, "/console/dead/results", fmt.Sprintf(
		`{"sent":[{"id":%q,"key":"content#written","at":%q},{"id":%q,"at":%[2]q}]}`, done, began.Format(time.RFC3339Nano), keyless.ID))
	for _, r := range decided.Results {
		if r.State != resultStale || !strings.Contains(r.Why, "version 0 is not written, because version 1 is committed") {
			t.Errorf("got %+v, want that a newer version is committed", r)
		}
	}
	if why := got.Results[0].Why; why != "contract: a detail" {
		t.Errorf("dead again because %q", why)
	}
	s.refused(http.StatusBadRequest, "at most 20", "/console/dead/results",
		`{"sent":[`+strings.Repeat(`{"id":"x"},`, 20)+`{"id":"x"}]}`)
	s.refused(http.StatusBadRequest, "key", "/console/dead/results", `{"sent":[{"id":"x","key":"no-collection"}]}`)
}

// A dead letter is closed only if its document is fresh with the version that corrects it.
func TestACorrectedDeadLetterIsClosedOnceItsDocumentIsFresh(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	id := s.park(`{"type":"doc.changed","subject":"a","data":{}}`, deadletter.VersionInvalid, time.Now())
	other := s.park(event("b", 1), deadletter.Contract, time.Now())
	order := func(version string) string {
		return fmt.Sprintf(`{"id":%q,"key":"content#a","version":%q}`, id, version)
	}
	s.refused(http.StatusConflict, "the dead letter stays", "/console/dead/close", order("1"))
	s.fresh("content#a")
	s.refused(http.StatusConflict, "the dead letter stays", "/console/dead/close", order("2"))
	s.refused(http.StatusBadRequest, "id and version", "/console/dead/close", `{"key":"content#a"}`)
	s.into(&map[string]int{}, "/console/dead/close", order("1"))
	left := usecasetest.Must(s.options.API.Letters(t.Context(), operate.LetterFilter{}))(t)
	if len(left) != 1 || left[0].ID != other {
		t.Errorf("left are %+v", left)
	}
	s.into(&map[string]int{}, "/console/dead/close", order("1")) // it is closed already
}
