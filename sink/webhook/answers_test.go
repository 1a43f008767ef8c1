// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/sinktest"
	"github.com/lullhq/lull/sink/webhook"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/answers.md")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func key(context.Context) (string, error) { return secret, nil }

// row is one answer of a receiver, with the wanted outcomes.
type row struct {
	sinktest.Answer
	answer http.HandlerFunc
	change func(*webhook.Options)
}

// says returns a handler that answers with a status, a body, and headers (name, value, ...).
func says(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func both(o sink.Outcome) sinktest.Answer { return sinktest.Answer{Put: o, Delete: o} }

func each(put, del sink.Outcome) sinktest.Answer { return sinktest.Answer{Put: put, Delete: del} }

func of(kind sink.OutcomeKind, reason string) sink.Outcome {
	return sink.Outcome{Kind: kind, Reason: reason}
}

func apart(kind sink.OutcomeKind, reason string) sink.Outcome {
	return sink.Outcome{Kind: kind, Reason: reason, Apart: true}
}

func after(o sink.Outcome, d time.Duration) sink.Outcome {
	o.RetryAfter = d
	return o
}

func unversioned(o *webhook.Options) { o.Versions = false }

// usual is the reason of an answer that needs none: docs/sinks/opensearch.md lists the outcomes.
const usual = ""

// refusedBoth is an answer that refuses two documents.
const refusedBoth = `{"results":[{"status":422},{"status":422}]}`

// inUTF16 encodes an ASCII text in UTF-16, little-endian and without a byte order mark.
func inUTF16(text string) string { return strings.Join(strings.Split(text, ""), "\x00") + "\x00" }

// If an answer has results that cannot be read, the outcome is Unknown, wherever the results begin.
// Any other text says nothing about documents, so the documents are Applied.
func TestOnlyAnAnswerThatMayHaveResultsIsUnknown(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]sink.OutcomeKind{
		"": sink.Applied, "OK": sink.Applied, "OK [17]": sink.Applied, `"OK"`: sink.Applied, "17": sink.Applied,
		"null": sink.Applied, "[]": sink.Applied, `{"status":"ok"}`: sink.Applied, "caf\xe9": sink.Applied,
		`{"resu`: sink.Unknown, `)]}',{"resu`: sink.Unknown, "while(1);" + refusedBoth: sink.Unknown,
		inUTF16(refusedBoth): sink.Unknown, "\x00" + inUTF16(refusedBoth): sink.Unknown,
		inUTF16("while(1);" + refusedBoth): sink.Unknown, "\xa0" + refusedBoth: sink.Unknown,
		"\u200b" + refusedBoth: sink.Unknown, refusedBoth + refusedBoth: sink.Unknown,
		"[" + refusedBoth + "]": sink.Unknown, `[{"Status":422}]`: sink.Unknown, "[ok]": sink.Unknown, `{"results":null}`: sink.Unknown,
		"\xff\xfe" + inUTF16("<html>"): sink.Configuration, "\u00a0<html>": sink.Configuration,
	} {
		url := server(t, says(200, body))
		s := opened(t, webhook.Options{URL: url, Secrets: key, Versions: true, BulkDocuments: 10})
		for i, o := range s.Write(t.Context(), []sink.Op{put("c#a", `{}`), put("c#b", `{}`)}) {
			if o.Kind != want {
				t.Errorf("%q: document %d got %+v, want %s", body, i, o, want)
			}
		}
	}
}

// rows returns the table of testdata/answers.md.
func rows() []row {
	applied := sink.Outcome{Kind: sink.Applied}
	list := []struct {
		engine, says, why string
		answer            sinktest.Answer
		by                http.HandlerFunc
		change            func(*webhook.Options)
	}{
		{"has it", "200, or another 2xx, with nothing or JSON", "2xx says that the receiver has it for good", both(applied), says(204, ""), nil},
		{"has all of several", "200 without results", "no result says otherwise", both(applied), says(200, `{"ok":true}`), nil},
		{
			"has one of two", "200 with results 200 and 503, Retry-After", "each document has a result of its own",
			each(applied, after(apart(sink.Throttled, "http 503"), 9*time.Second)),
			says(200, `{"results":[{"status":200},{"status":503}]}`, "Retry-After", "9"), nil,
		},
		{
			"has nothing to delete", "200 with results 201 and 404", "the document is not there, as was asked for",
			both(applied), says(200, `{"results":[{"status":201},{"status":404}]}`), nil,
		},
		{
			"does not take one of two", "200 with results 422 and 200", usual,
			each(apart(sink.Rejected, "http 422"), applied), says(200, `{"results":[{"status":422},{"status":200}]}`), nil,
		},
		{
			"fails for one of two", "200 with results 500 and 200", usual,
			each(of(sink.Unknown, "http 500"), applied), says(200, `{"results":[{"status":500},{"status":200}]}`), nil,
		},
		{
			"has one of two newer", "200 with results 409 and 200", "another program writes there: alarm",
			each(of(sink.Newer, "http 409"), applied), says(200, `{"results":[{"status":409},{"status":200}]}`), nil,
		},
		{
			"answers too little", "200 with one result for two documents", "it does not fit",
			both(of(sink.Unknown, "results")), says(200, `{"results":[{"status":200}]}`), nil,
		},
		{
			"answers without a status", "200 with a result that has none", "it does not fit",
			each(of(sink.Unknown, "results"), applied), says(200, `{"results":[{},{"status":200}]}`), nil,
		},
		{
			"is cut off", "200 with JSON that ends too early", "it does not fit",
			both(of(sink.Unknown, "results")), says(200, `{"results":[{"status":200},{"status":4`), nil,
		},
		{
			"begins with a byte order mark", "200 with a byte order mark, then JSON", "it does not fit",
			both(of(sink.Unknown, "results")), says(200, "\ufeff"+`{"results":[{"status":422},{"status":422}]}`), nil,
		},
		{
			"answers twice", "200 with results, then more JSON", "it does not fit",
			both(of(sink.Unknown, "results")), says(200, `{"results":[{"status":422},{"status":422}]}{}`), nil,
		},
		{
			"answers with a list", "200 with a list of results in place of an object", "it does not fit",
			both(of(sink.Unknown, "results")), says(200, ` [{"status":422},{"status":422}]`), nil,
		},
		{
			"answers with another list", "200 with a list that has no `status` and no `results`", "no result says otherwise",
			both(applied), says(200, `[{"message":"Workflow was started"}]`), nil,
		},
		{
			"guards its JSON", "200 with `)]}',` before the results", "it does not fit",
			both(of(sink.Unknown, "results")), says(200, ")]}',\n"+refusedBoth), nil,
		},
		{
			"begins with another space", "200 with a space that JSON does not have, then results", "it does not fit",
			both(of(sink.Unknown, "results")), says(200, "\u00a0"+refusedBoth), nil,
		},
		{
			"answers in UTF-16", "200 with results in UTF-16", "it does not fit",
			both(of(sink.Unknown, "results")), says(200, "\xff\xfe"+inUTF16(refusedBoth)), nil,
		},
		{
			"packs its answer", "200 with a `Content-Encoding` that lull did not ask for", "it does not fit",
			both(of(sink.Unknown, "results")), says(200, "\x1b\x2f\x00\xf8", "Content-Encoding", "br"), nil,
		},
		{
			"answers with a text", "200 with a text such as OK", "no result says otherwise", both(applied), says(200, "OK"), nil,
		},
		{
			"is a web page", "200 with HTML", "this is not the receiver: a login page, or a site that answers everything",
			both(of(sink.Configuration, "web_page")), says(200, "\n<!doctype html><p>secret"), nil,
		},
		{"holds a greater fence", "409", "another program writes there: alarm", both(of(sink.Newer, "http 409")), says(409, "secret"), nil},
		{
			"holds a greater fence of two", "409 to a request with several", "the request is cut until each document is alone",
			both(of(sink.Newer, "http 409")), says(409, "secret"), nil,
		},
		{
			"has a conflict, without `versions: true`", "409", "nothing can be newer there",
			both(of(sink.Unknown, "http 409")), says(409, "secret"), unversioned,
		},
		{
			"does not take the document", "422", usual, both(apart(sink.Rejected, "http 422")), says(422, "secret"), nil,
		},
		{
			"finds the request too large", "413", "a document that is too large alone is at fault",
			both(apart(sink.Rejected, "http 413")), says(413, "secret"), nil,
		},
		{
			"does not understand the request", "400", "frameworks say so of every request, too: it is tried again, maxRefusals times",
			both(apart(sink.Refused, "http 400")), says(400, "secret"), nil,
		},
		{
			"does not understand a request with several", "400", "the request is cut until each document is alone",
			both(apart(sink.Refused, "http 400")), says(400, "secret"), nil,
		},
		{"refuses the signature", "401", usual, both(of(sink.Configuration, "http 401")), says(401, "secret"), nil},
		{"does not let lull in", "403", usual, both(of(sink.Configuration, "http 403")), says(403, "secret"), nil},
		{
			"is not at this path", "404, also for a delete", "the address is the same for all documents, so it is not about one",
			both(of(sink.Configuration, "http 404")), says(404, "secret"), nil,
		},
		{"takes no POST", "405", usual, both(of(sink.Configuration, "http 405")), says(405, "secret"), nil},
		{
			"is gone for good", "410, also for a delete", "Standard Webhooks: nothing is behind the address any more",
			both(of(sink.Configuration, "http 410")), says(410, "secret"), nil,
		},
		{"wants another type", "415", usual, both(of(sink.Configuration, "http 415")), says(415, "secret"), nil},
		{
			"is elsewhere", "302", "redirects are not followed: they lead away from what was signed for",
			both(of(sink.Configuration, "http 302")), says(302, "secret", "Location", "/elsewhere"), nil,
		},
		{"cannot be signed for", "nothing: the request was not sent", usual, both(of(sink.Configuration, "no_key")), nil, func(o *webhook.Options) {
			o.Secrets = func(context.Context) (string, error) { return "", errors.New("denied") }
		}},
		{
			"has a private address, without `webhook.private: true`", "nothing: the request was not sent", "a name must not lead into the network of the function",
			both(of(sink.Configuration, "address_not_public")), nil, func(o *webhook.Options) { o.URL = strings.Replace(o.URL, "127.0.0.1", "0.0.0.0", 1) },
		},
		{
			"has an invalid certificate", "nothing: the request was not sent", usual, both(of(sink.Configuration, "certificate")), nil,
			func(o *webhook.Options) { o.URL = "tls" },
		},
		{"throttles", "429 with Retry-After", usual, both(after(of(sink.Throttled, "http 429"), 17*time.Second)), says(429, "secret", "Retry-After", "17"), nil},
		{"does not want it yet", "425", usual, both(of(sink.Throttled, "http 425")), says(425, ""), nil},
		{"is busy, and says until when", "503 with Retry-After", usual, both(after(of(sink.Throttled, "http 503"), time.Minute)), says(503, "", "Retry-After", "60"), nil},
		{"waited too long, and says when to come", "408 with Retry-After", usual, both(after(of(sink.Throttled, "http 408"), time.Second)), says(408, "", "Retry-After", "1"), nil},
		{"is away", "no connection", "not a byte was sent", both(of(sink.Throttled, "unreachable")), nil, func(o *webhook.Options) { o.URL = "http://127.0.0.1:1/" }},
		{"is busy", "503", "a proxy does not say when it gave up", both(of(sink.Unknown, "http 503")), says(503, "secret"), nil},
		{"waited too long", "408", usual, both(of(sink.Unknown, "http 408")), says(408, ""), nil},
		{"fails", "500, or another 5xx", usual, both(of(sink.Unknown, "http 500")), says(500, "secret"), nil},
		{"closes the connection", "nothing", usual, both(of(sink.Unknown, "interrupted")), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil},
		{"answers without end", "200 with more than 64 KB", "no more is read: it may say anything", both(of(sink.Unknown, "interrupted")), says(200, strings.Repeat(" ", 1<<20)), nil},
	}
	all := make([]row, len(list))
	for i, l := range list {
		r := row{Answer: l.answer, answer: l.by, change: l.change}
		r.Engine, r.Says, r.Why = l.engine, l.says, l.why
		r.Open = r.open
		all[i] = r
	}
	return all
}

func (r row) open(t *testing.T) sink.Sink {
	answer := r.answer
	if answer == nil {
		answer = func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") }
	}
	o := webhook.Options{URL: server(t, answer), Secrets: key, Versions: true, BulkDocuments: 10}
	if r.change != nil {
		r.change(&o)
	}
	if o.URL == "tls" {
		s := httptest.NewUnstartedServer(answer)
		s.Config.ErrorLog = quiet
		s.StartTLS()
		t.Cleanup(s.Close)
		o.URL = s.URL
	}
	return opened(t, o)
}

func TestAnswers(t *testing.T) {
	var answers []sinktest.Answer
	for _, r := range rows() {
		answers = append(answers, r.Answer)
	}
	sinktest.Answers(t, answers)
	sinktest.Page(t, "testdata/answers.md", "go test ./sink/webhook -run TestAnswers -rewrite", answers, *rewrite)
}

// After a receiver has said that it accepts nothing, only requests that are already running reach
// the receiver.
func TestTheRestIsNotSentWhereNothingIsTaken(t *testing.T) {
	t.Parallel()
	ops := make([]sink.Op, 200)
	for i := range ops {
		ops[i] = put(fmt.Sprintf("c#%d", i), `{}`)
	}
	for _, status := range []int{429, 401} {
		var requests atomic.Int64
		url := server(t, func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(status)
		})
		for i, o := range opened(t, webhook.Options{URL: url, Parallel: 4}).Write(t.Context(), ops) {
			waits := o.Kind != sink.Throttled || o.RetryAfter == 30*time.Second || status != 429
			if !waits || o.Kind == sink.Unknown || o.Apart {
				t.Fatalf("op %d: %+v", i, o)
			}
		}
		if n := requests.Load(); n > 4 {
			t.Errorf("%d: %d requests, want 4 at most", status, n)
		}
	}
}

// The test checks the headers and the body of a request.
func TestARequest(t *testing.T) {
	t.Parallel()
	var header http.Header
	var body []byte
	url := server(t, func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
	})
	s := opened(t, webhook.Options{
		URL: url + "/hooks?no", Secrets: func(context.Context) (string, error) { return secret + " " + secret, nil },
		Now: func() time.Time { return time.Unix(1_795_336_827, 5) },
	})
	op := put("content#<a>", `{ "n": 1.10, "html": "<b>" }`)
	op.Version, op.At, op.Fence = "00\x017", time.Unix(1_795_336_826, 0), 1_795_336_827_004_364
	if o := s.Write(t.Context(), []sink.Op{op})[0]; o.Kind != sink.Applied {
		t.Fatalf("got %+v", o)
	}
	want := `{"type":"lull.documents","timestamp":"2026-11-22T08:40:27Z","data":{"documents":[{"operation":"put",` +
		`"collection":"content","id":"\u003ca\u003e","fence":"1795336827004364","order_key":"","version":"00\u00017",` +
		`"indexed_at":"2026-11-22T08:40:26Z","document":{"n":1.10,"html":"<b>"}}]}}`
	if got := string(body); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	signatures := strings.Fields(header.Get("webhook-signature"))
	if len(signatures) != 2 || !strings.HasPrefix(signatures[0], "v1,") ||
		header.Get("webhook-timestamp") != "1795336827" ||
		header.Get("lull-fence") != "1795336827004364" || !strings.HasPrefix(header.Get("webhook-id"), "lull_") {
		t.Errorf("got %v", header)
	}
	first := header.Get("webhook-id")
	if op.Fence++; s.Write(t.Context(), []sink.Op{op})[0].Kind != sink.Applied || header.Get("webhook-id") == first {
		t.Errorf("two writes have the id %s", first)
	}
}

func TestOptionsThatAreNotAnAddress(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "receiver:80", "ftp://receiver", "http://", "http://me:secret@receiver/", "http://%zz"} {
		if _, err := webhook.New(webhook.Options{URL: url}); err == nil || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%q: got %v", url, err)
		}
	}
}

// Ping says what to correct.
func TestPing(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		200: "", 400: "", 422: "", 401: "denies access", 403: "denies access", 404: "correct the url", 405: "correct the url",
		302: "HTTP 302", 500: "HTTP 500", 503: "HTTP 503",
	} {
		err := opened(t, webhook.Options{URL: server(t, says(status, "")), Secrets: key}).Ping(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d: got %v, want %q", status, err, want)
		}
		if denied := status == 401 || status == 403; errors.Is(err, sink.ErrDenied) != denied {
			t.Errorf("%d: denied is not %t: %v", status, denied, err)
		}
	}
	for name, o := range map[string]webhook.Options{
		"web page": {URL: server(t, says(200, "<html>"))},
		"private":  {URL: strings.Replace(server(t, says(200, "")), "127.0.0.1", "0.0.0.0", 1)},
		"whsec_":   {URL: server(t, says(200, "")), Secrets: func(context.Context) (string, error) { return "hunter2", nil }},
		"refused":  {URL: "http://127.0.0.1:1/"},
	} {
		err := opened(t, o).Ping(t.Context())
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func put(doc, document string) sink.Op {
	return sink.Op{Doc: event.DocID(doc), Kind: event.Put, Fence: 1, Document: []byte(document)}
}
