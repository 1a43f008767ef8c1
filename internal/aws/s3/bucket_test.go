// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
)

// answers returns a bucket whose server gives the same answer to all requests and records each
// request.
func answers(t *testing.T, status int, body string, requests *[]string) *Bucket {
	t.Helper()
	return New(awstest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		*requests = append(*requests, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("If-None-Match")+" "+string(in))
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})), "lull-flights")
}

func xmlFailure(code string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><Error><Code>` + code +
		`</Code><Message>as scripted</Message></Error>`
}

func TestErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	id := flight.ID(ulid.Make().String())
	tests := []struct {
		name    string
		status  int
		code    string
		final   bool
		missing bool
		says    string
	}{
		{name: "no such key", status: 404, code: "NoSuchKey", final: true, missing: true},
		{name: "no such bucket", status: 404, code: "NoSuchBucket", final: true, says: "deploy"},
		{name: "access denied", status: 403, code: "AccessDenied", final: true, says: "grant"},
		{name: "wrong key", status: 403, code: "InvalidAccessKeyId", final: true, says: "grant"},
		{name: "slow down", status: 503, code: "SlowDown"},
		{name: "internal error", status: 500, code: "InternalError"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var requests []string
			_, err := NewFlights(answers(t, tt.status, xmlFailure(tt.code), &requests)).Get(awstest.Context(t), id)
			if err == nil {
				t.Fatal("got no error")
			}
			if got := errors.Is(err, flight.ErrNotFound); got != tt.missing {
				t.Errorf("not found: got %v, want %v: %v", got, tt.missing, err)
			}
			if got := backoff.Final(err); got != tt.final {
				t.Errorf("final: got %v, want %v: %v", got, tt.final, err)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want it to say %q", err, tt.says)
			}
			if len(requests) != 1 {
				t.Errorf("got %d requests, want one: package backoff alone retries", len(requests))
			}
		})
	}
}

func TestACheckpointIsCreatedUnderACondition(t *testing.T) {
	t.Parallel()
	id := flight.ID(ulid.Make().String())
	for _, tt := range []struct {
		status  int
		code    string
		created bool
		fails   bool
	}{
		{200, "", true, false},
		{412, "PreconditionFailed", false, false},
		{409, "ConditionalRequestConflict", false, true},
		{500, "InternalError", false, true},
	} {
		var requests []string
		b := answers(t, tt.status, xmlFailure(tt.code), &requests)
		created, err := NewFlights(b).Continue(awstest.Context(t), id, 3, flight.State{Flight: id, Leg: 3})
		if created != tt.created || (err != nil) != tt.fails {
			t.Errorf("%d: got %v, %v, want %v, error %v", tt.status, created, err, tt.created, tt.fails)
		}
		if want := fmt.Sprintf("PUT /lull-flights/flights/%s/next-3?x-id=PutObject * ", id); len(requests) != 1 ||
			!strings.HasPrefix(requests[0], want) {
			t.Errorf("got %q, want %q", requests, want)
		}
	}
}

func TestAYoungFlightIsDeletedByOneRequest(t *testing.T) {
	t.Parallel()
	var requests []string
	b := answers(t, 200, `<DeleteResult/>`, &requests)
	id := flight.ID(ulid.Make().String())
	if err := NewFlights(b).Delete(awstest.Context(t), id); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if len(requests) != 1 || !strings.HasPrefix(requests[0], "POST /lull-flights?delete") {
		t.Fatalf("got %q, want one deletion", requests)
	}
	for _, name := range []string{"manifest", "next-1<", fmt.Sprintf("next-%d<", youngLegs)} {
		if !strings.Contains(requests[0], string(id)+"/"+name) {
			t.Errorf("%s is not deleted: %s", name, requests[0])
		}
	}
}

func TestADeletionThatFailsForOneObjectFails(t *testing.T) {
	t.Parallel()
	id := flight.ID(ulid.Make().String())
	for code, want := range map[string]struct{ fails, final bool }{
		"AccessDenied": {true, true}, "InternalError": {true, false}, "NoSuchKey": {false, false},
	} {
		var requests []string
		b := answers(t, 200, `<DeleteResult><Error><Key>k</Key><Code>`+code+`</Code></Error></DeleteResult>`, &requests)
		err := NewFlights(b).Delete(awstest.Context(t), id)
		if (err != nil) != want.fails || err != nil && backoff.Final(err) != want.final {
			t.Errorf("%s: got %v, want %+v", code, err, want)
		}
	}
}

func TestFlightsKnowTheirAge(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(d time.Duration) flight.ID {
		return flight.ID(ulid.MustNew(ulid.Timestamp(now.Add(d)), ulid.DefaultEntropy()).String())
	}
	f := NewFlights(&Bucket{})
	f.clk = clock.System{}
	for id, want := range map[flight.ID]bool{
		at(0): true, at(-30 * time.Second): true, at(30 * time.Second): true, at(-2 * time.Minute): false,
		at(time.Hour): false, "flight-1": false,
	} {
		if got := f.young(id); got != want {
			t.Errorf("%s: got %v, want %v", id, got, want)
		}
	}
}

func TestAnIdThatWouldNameOtherObjectsIsRefused(t *testing.T) {
	t.Parallel()
	var requests []string
	f := NewFlights(answers(t, 200, "", &requests))
	ctx := awstest.Context(t)
	for _, id := range []flight.ID{"", "a/b", "../x/", "a~"} {
		if err := f.Put(ctx, &flight.Manifest{Flight: id}); err == nil {
			t.Errorf("put %q: got no error", id)
		}
		if err := f.Delete(ctx, id); err == nil {
			t.Errorf("delete %q: got no error", id)
		}
	}
	if len(requests) != 0 {
		t.Errorf("got %q, want no request", requests)
	}
}

func TestAnObjectThatIsTooLargeIsNotRead(t *testing.T) {
	t.Parallel()
	var requests []string
	b := answers(t, 200, strings.Repeat("x", 100), &requests)
	if _, err := b.get(awstest.Context(t), b.name, "k", 99); err == nil || !backoff.Final(err) {
		t.Errorf("got %v, want a permanent error", err)
	}
	if got, err := b.get(awstest.Context(t), b.name, "k", 100); err != nil || len(got) != 100 {
		t.Errorf("got %d bytes, %v, want 100", len(got), err)
	}
}

func TestAReferenceThatCannotBeHadIsAFault(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		fault  string // part of the problem that a permanent fault names; empty for no fault
		good   bool
	}{
		{name: "there", status: 200, body: "{}", good: true},
		{name: "missing", status: 404, body: xmlFailure("NoSuchKey"), fault: "not there"},
		{name: "too large", status: 200, body: strings.Repeat("x", payload.MaxObject+1), fault: "more than"},
		{name: "denied", status: 403, body: xmlFailure("AccessDenied")},
		{name: "unavailable", status: 503, body: xmlFailure("SlowDown")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var requests []string
			got, err := answers(t, tt.status, tt.body, &requests).Load(awstest.Context(t), "payloads", "a/b c")
			var f *event.Invalid
			isFault := errors.As(err, &f)
			if (err == nil) != tt.good || isFault != (tt.fault != "") || tt.good && string(got) != tt.body {
				t.Fatalf("got %d bytes, %v, want fault %q", len(got), err, tt.fault)
			}
			if isFault && (!strings.Contains(f.Problem, tt.fault) || f.Reason != deadletter.Payload) {
				t.Errorf("got %+v, want %q", f, tt.fault)
			}
			if !strings.HasPrefix(requests[0], "GET /payloads/a/b%20c?") {
				t.Errorf("got %s", requests[0])
			}
		})
	}
}
