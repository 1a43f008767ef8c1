package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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
		code   int
		says   string
	}{
		{"init", secret, []string{"init"}, exitOK, "sink search has its index template"},
		{"get", secret, []string{"get", "content#a"}, exitOK, "version\t7"},
		{
			"no secret", awstest.Failure(http.StatusBadRequest, "ResourceNotFoundException", "it is "+password),
			[]string{"init"},
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
	if !strings.Contains(a.out, "of several indices: let it name one") {
		t.Errorf("doctor said %s", a.out)
	}
}

// A webhook is written to only. Doctor sends its document all the same, and `lull get` says why it
// cannot help.
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
