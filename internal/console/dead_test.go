// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/deadletter"
)

func event(id string, version int) string {
	return fmt.Sprintf(
		`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":"v%d"}}`,
		id,
		version,
		version,
	)
}

func TestDeadLettersOfAnEmptyStack(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	var page operate.LetterPage
	if s.into(&page, "/console/dead", ""); page.Letters == nil || len(page.Letters) != 0 || page.Next != "" {
		t.Errorf("got %+v, want an empty list", page)
	}
	var groups struct {
		Groups  []operate.LetterGroup
		Reasons []string
	}
	if s.into(&groups, "/console/dead/groups", ""); groups.Groups == nil || len(groups.Groups) != 0 ||
		len(groups.Reasons) < 10 {
		t.Errorf("got %+v, want no groups and all reasons", groups)
	}
	s.refused(http.StatusNotFound, "no such dead letter", "/console/dead/letter?id=x", "")
	s.refused(http.StatusNotFound, "no such dead letter", "/console/dead/body?id=%00%3Cscript%3E", "")
}

func TestTenThousandDeadLettersAreShownPageByPage(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	began := time.Now().Add(-time.Hour)
	const all = 10_000
	for i := range all {
		reason := deadletter.RejectedBySink
		if i%4 == 0 {
			reason = deadletter.Refusals
		}
		s.park(event(fmt.Sprint("d-", i), 1), reason, began.Add(time.Duration(i)*time.Microsecond))
	}
	var groups struct {
		Groups []struct {
			Reason, Why, Fix string
			Parked           int
		}
	}
	s.into(&groups, "/console/dead/groups", "")
	if len(groups.Groups) != 2 || groups.Groups[0].Parked != all*3/4 || groups.Groups[0].Why == "" ||
		groups.Groups[1].Fix == "" {
		t.Errorf("got %+v, want two groups, the larger first, each with its advice", groups)
	}
	var page operate.LetterPage
	if s.into(&page, "/console/dead?reason=refusals&limit=200", ""); len(page.Letters) != 200 || page.Next == "" {
		t.Errorf("got %d dead letters and cursor %q, want 200 and more", len(page.Letters), page.Next)
	}
	first := page.Letters[0].ID
	if s.into(&page, "/console/dead?reason=refusals&limit=200&cursor="+page.Next, ""); page.Letters[0].ID == first {
		t.Error("the second page begins as the first")
	}
	if w := s.ask("/console/dead?limit=1000", ""); w.Body.Len() > 1<<20 {
		t.Errorf("a page has %d bytes", w.Body.Len())
	}
	s.refused(http.StatusBadRequest, "limit", "/console/dead?limit=1001", "")
	s.refused(http.StatusBadRequest, "limit", "/console/dead?limit=many", "")
	s.refused(http.StatusBadRequest, "want one of undecodable", "/console/dead?reason=%3Cscript%3E", "")
	s.refused(http.StatusBadRequest, "key", "/console/dead?key=a%00b", "")
	s.refused(http.StatusBadRequest, "after: use a time", "/console/dead/groups?after=yesterday", "")
}

func TestABodyIsShownOnDemandBoundedAndWithEscapes(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	for name, tt := range map[string]struct {
		body, want string
		cut, other bool
	}{
		"JSON":           {body: event("<script>alert(1)</script>", 1), want: "<script>"},
		"control":        {body: "a\x1b[31mb\u202ec\x00", want: `a\u001b[31mb\u202ec\u0000`},
		"not UTF-8":      {body: "a\xff\xfeb", want: `a\xff\xfeb`, other: true},
		"a megabyte":     {body: strings.Repeat("ü😀", 160_000), cut: true},
		"a megabyte odd": {body: "x" + strings.Repeat("ü😀", 160_000), cut: true},
	} {
		id := s.park(tt.body, deadletter.Contract, time.Now())
		var got readableBody
		s.into(&got, "/console/dead/body?id="+id, "")
		if got.Bytes != len(tt.body) || got.Cut != tt.cut || got.UTF8 == tt.other || len(got.Text) > 2*maxShown ||
			!strings.Contains(got.Text, tt.want) || strings.Contains(got.Text, "\ufffd") {
			t.Errorf("%s: got %d bytes, cut %t, UTF-8 %t, text %.80q", name, got.Bytes, got.Cut, got.UTF8, got.Text)
		}
		facts := s.ask("/console/dead/letter?id="+id, "")
		if facts.Code != http.StatusOK || strings.Contains(facts.Body.String(), `"body`) ||
			!strings.Contains(facts.Body.String(), "advice") {
			t.Errorf("%s: the facts are %d %.300s, want no body and some advice", name, facts.Code, facts.Body)
		}
	}
}

// linesOf reads the lines of the answer to a redrive or drop.
func linesOf(t *testing.T, w *httptest.ResponseRecorder) (lines []deadLine) {
	t.Helper()
	for in := bufio.NewScanner(w.Body); in.Scan(); {
		var l deadLine
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			t.Fatalf("line %q: %v", in.Text(), err)
		}
		lines = append(lines, l)
	}
	return lines
}

func TestARedriveSaysWhatBecomesOfEach(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	for i := range 5 {
		s.park(event(fmt.Sprint("d-", i), 1), deadletter.RejectedBySink, time.Now().Add(-time.Minute))
	}
	s.refused(http.StatusBadRequest, "nothing is selected", "/console/dead/redrive", `{}`)
	s.refused(http.StatusBadRequest, "not the JSON", "/console/dead/redrive", `{`)
	s.refused(
		http.StatusRequestEntityTooLarge,
		"at most",
		"/console/dead/redrive",
		`"`+strings.Repeat("x", maxRequest)+`"`,
	)
	dry := linesOf(t, s.ask("/console/dead/redrive", `{"all":true,"dry_run":true}`))
	if end := dry[len(dry)-1]; len(dry) != 6 || !end.End || end.Counts["would_send"] != 5 ||
		s.live.Counts().Total() != 0 {
		t.Errorf("dry run: %+v, %d messages sent; want five that would be sent", dry, s.live.Counts().Total())
	}
	one := linesOf(t, s.ask("/console/dead/redrive", `{"id":"`+dry[0].ID+`","by":"somebody else"}`))
	if len(one) != 2 || one[0].Outcome != "sent" || one[0].Key == "" || s.live.Counts().Total() != 1 {
		t.Errorf("one: %+v", one)
	}
	rest := linesOf(t, s.ask("/console/dead/redrive", `{"reason":"rejected"}`))
	if end := rest[len(rest)-1]; end.Counts["sent"] != 4 || end.Error != "" {
		t.Errorf("the rest: %+v", end)
	}
	bad := linesOf(t, s.ask("/console/dead/redrive", `{"all":true,"rate":-1}`))
	if end := bad[len(bad)-1]; !end.End || !strings.Contains(end.Error, "rate") {
		t.Errorf("a negative rate: %+v", bad)
	}
}

// An order may select dead letters one by one. It touches no other dead letter.
func TestSelectedDeadLettersAreRedrivenAndDropped(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	var ids []string
	for i := range 6 {
		ids = append(ids, s.park(event(fmt.Sprint("d-", i), 1), deadletter.RejectedBySink, time.Now().Add(-time.Minute)))
	}
	order := func(some []string, more string) string {
		list, err := json.Marshal(some)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"ids":%s%s}`, list, more)
	}
	two := []string{ids[1], ids[3], ids[1], "<script>"} // one is selected twice, and one does not exist
	dry := linesOf(t, s.ask("/console/dead/redrive", order(two, `,"dry_run":true`)))
	if end := dry[len(dry)-1]; len(dry) != 4 || end.Counts["would_send"] != 2 || end.Counts["gone"] != 1 ||
		s.live.Counts().Total() != 0 {
		t.Errorf("dry run: %+v", dry)
	}
	did := linesOf(t, s.ask("/console/dead/redrive", order(two, "")))
	if end := did[len(did)-1]; end.Error != "" || end.Counts["sent"] != 2 || s.live.Counts().Total() != 2 {
		t.Errorf("redrive: %+v", did)
	}
	s.refused(http.StatusBadRequest, `say "drop 2"`, "/console/dead/drop", order([]string{ids[0], ids[5], "x"}, ""))
	s.refused(http.StatusConflict, "but 2 are selected", "/console/dead/drop", order([]string{ids[0], ids[5]}, `,"confirm":"drop 6"`))
	dropped := linesOf(t, s.ask("/console/dead/drop", order([]string{ids[0], ids[5], "x"}, `,"confirm":"drop 2"`)))
	if end := dropped[len(dropped)-1]; end.Counts["dropped"] != 2 || end.Counts["gone"] != 1 {
		t.Errorf("drop: %+v", dropped)
	}
	var page operate.LetterPage
	if s.into(&page, "/console/dead?state=parked", ""); len(page.Letters) != 2 {
		t.Errorf("%d dead letters are parked, want 2", len(page.Letters))
	}
	many := make([]string, maxSelected+1)
	for i := range many {
		many[i] = fmt.Sprint("x", i)
	}
	for text, body := range map[string]string{
		"ids: at most 100": order(many, ""), "ids: an id is empty": order([]string{"a", ""}, ""),
		"nothing is selected": order(nil, ""), "ids: ids exclude": order(two, `,"all":true`),
		"rate: ids have no rate": order(two, `,"rate":1`), "not the JSON": `{"ids":"a"}`,
	} {
		s.refused(http.StatusBadRequest, text, "/console/dead/redrive", body)
	}
}

// leavingClient is a client that closes the connection after some lines.
type leavingClient struct {
	*httptest.ResponseRecorder
	stays int
	leave context.CancelFunc
}

func (l *leavingClient) Write(b []byte) (int, error) {
	if l.stays--; l.stays == 0 {
		l.leave()
	}
	return l.ResponseRecorder.Write(b)
}

func TestARedriveThatIsCancelledLeavesTheRestParked(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	const all, stays = 500, 7
	for i := range all {
		s.park(event(fmt.Sprint("d-", i), 1), deadletter.RejectedBySink, time.Now().Add(-time.Minute))
	}
	ctx, leave := context.WithCancel(t.Context())
	w := &leavingClient{httptest.NewRecorder(), stays, leave}
	r := httptest.NewRequest(http.MethodPost, "/console/dead/redrive", strings.NewReader(`{"all":true}`))
	New(s.options).ServeHTTP(w, r.WithContext(ctx))
	said := linesOf(t, w.ResponseRecorder)
	end := said[len(said)-1]
	sent := s.live.Counts().Total()
	if sent < stays || sent == all || end.Counts["sent"] != sent || len(said) != sent+1 ||
		!strings.Contains(end.Error, fmt.Sprint(sent, " done")) {
		t.Errorf("%d messages were sent, %d told, the end says %+v; want some, as many as were told", sent, len(said)-1, end)
	}
	var page operate.LetterPage
	s.into(&page, "/console/dead?limit=1000", "")
	parked := 0
	for _, l := range page.Letters {
		if l.State == deadletter.Parked {
			parked++
		}
	}
	if len(page.Letters) != all || parked != all-sent {
		t.Errorf(
			"%d dead letters, %d of them parked; want all %d, and what was not sent as it was",
			len(page.Letters),
			parked,
			all,
		)
	}
}

// If a client stops a redrive, the row of the job says that it has stopped. Another program can
// continue the job.
func TestARedriveThatIsCancelledContinues(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	const all = 60
	for i := range all {
		s.park(event(fmt.Sprint("d-", i), 1), deadletter.RejectedBySink, time.Now().Add(-time.Minute))
	}
	ctx, leave := context.WithCancel(t.Context())
	w := &leavingClient{httptest.NewRecorder(), 1, leave}
	r := httptest.NewRequest(http.MethodPost, "/console/dead/redrive", strings.NewReader(`{"all":true}`))
	New(s.options).ServeHTTP(w, r.WithContext(ctx))
	jobs, err := s.options.API.Jobs(t.Context())
	if err != nil || len(jobs) != 1 || jobs[0].ID != "redrive" || jobs[0].Phase != job.Stopped {
		t.Errorf("jobs %+v, %v; want it stopped", jobs, err)
	}
	said := linesOf(t, s.ask("/console/dead/redrive", `{"all":true}`))
	if end := said[len(said)-1]; end.Error != "" || end.Counts["sent"] != all || s.live.Counts().Total() != all {
		t.Errorf("%d sent, the end says %+v; want all", s.live.Counts().Total(), end)
	}
}

func TestADropNeedsItsConfirmation(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	for i := range 3 {
		s.park(event(fmt.Sprint("d-", i), 1), deadletter.RejectedBySink, time.Now().Add(-time.Minute))
	}
	left := func(want int) {
		t.Helper()
		var page operate.LetterPage
		if s.into(&page, "/console/dead", ""); len(page.Letters) != want {
			t.Errorf("%d dead letters remain, want %d", len(page.Letters), want)
		}
	}
	const path = "/console/dead/drop"
	s.refused(http.StatusBadRequest, "nothing is selected", path, `{"confirm":"drop 3"}`)
	s.refused(http.StatusBadRequest, `"drop 3"`, path, `{"all":true}`)
	s.refused(http.StatusConflict, "3 are selected now", path, `{"all":true,"confirm":"drop 2"}`)
	s.refused(http.StatusConflict, "3 are selected now", path, `{"all":true,"confirm":"drop"}`)
	s.refused(http.StatusBadRequest, "unknown", path, `{"reason":"nope","confirm":"drop 0"}`)
	s.refused(http.StatusNotFound, "no such dead letter", path, `{"id":"x","confirm":"drop 1"}`)
	dry := linesOf(t, s.ask(path, `{"all":true,"dry_run":true}`))
	if end := dry[len(dry)-1]; end.Counts["would_drop"] != 3 {
		t.Errorf("dry run: %+v", end)
	}
	left(3)
	one := linesOf(t, s.ask(path, `{"id":"`+dry[0].ID+`","confirm":"drop 1"}`))
	if end := one[len(one)-1]; end.Counts["dropped"] != 1 {
		t.Errorf("one: %+v", one)
	}
	left(2)
	rest := linesOf(t, s.ask(path, `{"reason":"rejected","confirm":"drop 2"}`))
	if end := rest[len(rest)-1]; end.Counts["dropped"] != 2 || end.Error != "" {
		t.Errorf("the rest: %+v", end)
	}
	left(0)
}

func TestWhoMayNotSeeDeadLettersIsToldWhichRightIsMissing(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.options.API = deniedAPI
	for _, path := range []string{
		"/console/dead", "/console/dead/groups", "/console/dead/letter?id=x",
		"/console/dead/body?id=x",
	} {
		s.refused(http.StatusForbidden, "your role lacks dynamodb:Query. The stack's reader role has it", path, "")
	}
	s.refused(
		http.StatusForbidden,
		"The stack's operator role has it",
		"/console/dead/drop",
		`{"all":true,"confirm":"drop 1"}`,
	)
	said := linesOf(t, s.ask("/console/dead/redrive", `{"all":true}`))
	if end := said[len(said)-1]; !end.End || !strings.Contains(end.Error, "The stack's operator role has it") {
		t.Errorf("redrive: %+v, want the role that may", said)
	}
}
