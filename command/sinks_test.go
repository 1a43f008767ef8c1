// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lullhq/lull/internal/aws/awstest"
)

// The password that a deployment accepts is in a secret: the operator's commands read it there, as
// the functions do, and say nothing of it.
func TestCommandsReachASinkWithTheSecretOfItsSettings(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, given, _ := r.BasicAuth(); user != "reader" || given != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/_mget" {
			_, _ = io.WriteString(w, `{"docs":[{"found":true,"_source":{"title":"x","_lull":{"version":"7","order_key":"k","fence":1,`+
				`"indexed_at":"2026-11-20T16:00:00Z"}}}]}`)
			return
		}
		if r.Method == http.MethodGet { // there is no template
			_, _ = io.WriteString(w, `{}`)
			return
		}
		_, _ = io.WriteString(w, `{"acknowledged":true}`)
	}))
	t.Cleanup(engine.Close)
	settings := "stack: shop\nsinks: {search: {kind: opensearch, index: 'lull-{collection}', url: '" + engine.URL + "', auth: {kind: basic, " +
		"secretARN: 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:search-AbCdEf'}}}\n"
	secret := awstest.Reply{Body: map[string]string{"SecretString": `{"username":"reader","password":"` + password + `"}`}}
	for _, tt := range []struct {
		name   string
		secret awstest.Reply
		args   []string
		code   exitCode
		says   string
	}{
		{"install-template", secret, []string{"index", "install-template"}, exitOK, "sink search is prepared for content"},
		{"get", secret, []string{"get", "content#a"}, exitOK, "version\t7"},
		{
			"no secret", awstest.Failure(http.StatusBadRequest, "ResourceNotFoundException", "it is "+password),
			[]string{"index", "install-template"},
			exitFailed, "correct auth.secretARN",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, map[string]awstest.Reply{"GetSecretValue": tt.secret})
			save(t, a.settings, settings)
			got := a.ask(t, tt.args...)
			said := got.out + got.errors
			words := func(s string) string { return strings.Join(strings.Fields(s), "\t") }
			if got.code != tt.code || !strings.Contains(words(said), words(tt.says)) {
				t.Errorf("got exit code %d and %s, want %d and %q", got.code, said, tt.code, tt.says)
			}
			if strings.Contains(said, password) {
				t.Errorf("the password was printed: %s", said)
			}
		})
	}
}

// After a rollover an alias names several indices, and a delete would leave a copy in the others:
// doctor says so before it sends anything.
func TestDoctorRefusesAnAliasOfSeveralIndices(t *testing.T) {
	t.Parallel()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			_, _ = io.WriteString(w, `{"version":{"number":"2.19.3"}}`)
		case "/_mget":
			_, _ = io.WriteString(w, `{"docs":[{"error":{"type":"illegal_argument_exception","reason":`+
				`"alias [content] has more than one index associated with it [c-2, c-1], can't execute a single index op"}}]}`)
		case "/_bulk":
			t.Error("something was written")
			w.WriteHeader(http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, `{"acknowledged":true}`)
		}
	}))
	t.Cleanup(engine.Close)
	s := start(t, nil, "--sink", engine.URL, "--events", write(t), "--speed", "100")
	a := s.ask("doctor")
	a.want(t, "doctor", exitFailed, "1 of 6 checks")
	if !strings.Contains(a.out, "names several indices: let it name one") {
		t.Errorf("doctor said %s", a.out)
	}
}

// A webhook is written to only. Doctor still sends its document, and `lull get` says why it cannot
// help.
func TestDoctorOfASinkThatCannotBeReadBack(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(receiver.Close)
	s := start(t, nil, "--sink", "webhook:"+receiver.URL, "--events", write(t), "--speed", "100")
	a := s.ask("doctor")
	a.want(t, "doctor", exitOK, "the delete is committed")
	if !strings.Contains(a.out, "not checked: sink search") || strings.Contains(a.out, "the sink holds it") {
		t.Errorf("doctor said %s", a.out)
	}
	s.ask("get", "content#a").want(t, "get", exitUsage, "is a webhook: it is written to only")
}

// A receiver that restarts answers 503 for a while. The other sink is still dumped.
func TestARunWaitsForAReceiverThatIsAwayForNow(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	var asked, documents atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch asked.Add(1); {
		case away.Load():
			away.Store(asked.Load() < 4)
			w.WriteHeader(http.StatusServiceUnavailable)
		case strings.Contains(string(body), `"lull.documents"`):
			documents.Add(1)
		}
	}))
	t.Cleanup(receiver.Close)
	settings := write(t, "collections: {content: {sinks: [a, b]}}", "defaultCollection: content", "defaultSink: a",
		"sinks: {a: {kind: bleve}, b: {kind: webhook, url: '"+receiver.URL+"'}}")
	data := filepath.Join(t.TempDir(), "data")
	first := play(t, put("1", "1", "{}"), "--events", "-", "--config", settings, "--data", data)
	asked.Store(0)
	away.Store(true)
	second := play(t, put("2", "1", "{}"), "--events", "-", "--config", settings, "--data", data)
	second.says(t, "sink b: ping: webhook: HTTP 503", "lull asks again", "--dump: without sink b")
	if strings.Count(second.out, "lull asks again") != 1 {
		t.Errorf("said %q, want the reason once", second.out)
	}
	if len(first.dump) != 1 || len(second.dump) != 2 || documents.Load() != 2 {
		t.Errorf("dumped %v, then %v, and %d requests with documents", first.dump, second.dump, documents.Load())
	}
	only := filepath.Join(t.TempDir(), "dump")
	lull(t, "", "dev", "--exit-when-idle", "--events", write(t), "--sink", "webhook:"+receiver.URL, "--dump", only).
		want(t, "nothing to dump", exitFailed, "no sink can be read back: search")
}
