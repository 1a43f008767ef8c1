// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/console"
)

// deployed is a `lull console` for the stack of an account.
type deployed struct {
	*testing.T
	url, token string
	end        func() exitCode
}

func (a *account) console(t *testing.T, more ...string) *deployed {
	t.Helper()
	cfg, out := awstest.Serve(t, a), newScreen()
	var errs bytes.Buffer
	p := newApp(strings.NewReader(""), out, &errs)
	p.target.aws = func(context.Context) (aws.Config, error) { return cfg, nil }
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan exitCode, 1)
	go func() {
		ended <- p.run(ctx, append([]string{"console", "--aws", "--config", a.settings, "--listen", "127.0.0.1:0"}, more...))
		out.end()
	}()
	d := &deployed{T: t, end: func() exitCode { cancel(); return <-ended }}
	d.url = out.await(t, `(http://[^/]+)/#`)
	d.token = out.await(t, `#token=(\S+)`)
	return d
}

// ask sends a request with a token; empty for no token.
func (d *deployed) ask(path, token string) (int, string) {
	d.Helper()
	r, err := http.NewRequestWithContext(d.Context(), http.MethodGet, d.url+path, nil)
	if err != nil {
		d.Fatal(err)
	}
	if token != "" {
		r.Header.Set(console.TokenHeader, token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		d.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if e := resp.Body.Close(); err != nil || e != nil {
		d.Fatal(err, e)
	}
	return resp.StatusCode, string(body)
}

func TestTheConsoleOfADeployedStackAsksEverybodyForItsToken(t *testing.T) {
	t.Parallel()
	a := newAccount(t, nil)
	d := a.console(t)
	for path, want := range map[string]string{"/": "<title>lull", "/assets/app.js": "ctx.live"} {
		if code, text := d.ask(path, ""); code != http.StatusOK || !strings.Contains(text, want) ||
			strings.Contains(text, d.token) {
			t.Errorf("%s: %d %.80q", path, code, text)
		}
	}
	for _, path := range []string{
		"/console/about", "/console/documents", "/console/document?key=content%23a", "/console/dead", "/console/events",
		"/console/", "/operate/status", "/search?q=a",
	} {
		for _, token := range []string{"", "another"} {
			if code, text := d.ask(path, token); code != http.StatusForbidden || !strings.Contains(text, "token") {
				t.Errorf("%s with token %q: %d %.80q", path, token, code, text)
			}
		}
	}
	for path, want := range map[string]string{"/console/about": `"stack":"shop"`, "/console/documents": "a scan of"} {
		if code, text := d.ask(path, d.token); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	a.mu.Lock()
	if slices.Contains(a.calls, "Scan") {
		t.Error("a view scans the table")
	}
	a.mu.Unlock()
	http.DefaultClient.CloseIdleConnections()
	if code := d.end(); code != exitOK {
		t.Errorf("Ctrl-C: exit %d", code)
	}
}

func TestTheConsoleOfADevelopersStackCountsWhatHappened(t *testing.T) {
	t.Parallel()
	s := start(t, nil, "--events", write(t), "--speed", "100")
	s.publish(put("a", "1", "{}"), put("a", "2", "{}"))
	s.ask("wait", "content#a", "--version", "2").want(t, "wait", exitOK)
	d := &deployed{T: t, url: s.url}
	_, text := d.ask("/console/now", "")
	got := decode[struct {
		console.Measured
		Promise time.Duration `json:"promise_ns"`
	}](t, text)
	if got.Total.Events != 2 || got.Total.Written != 1 || len(got.Points) == 0 || got.Total.P50 <= 0 ||
		got.Promise != 9*time.Second {
		t.Errorf("got %s", text)
	}
	if len(got.Ranges) != 5 || got.Ranges[4] != 100*24*time.Hour {
		t.Errorf("the ranges are %v", got.Ranges)
	}
	_, text = d.ask("/console/now?range="+got.Ranges[4].String(), "")
	day := decode[console.Measured](t, text)
	if day.Step != 60*got.Step || len(day.Points) == 0 || day.Points[0].Events == 0 {
		t.Errorf("a day has %s", text)
	}
	for i, want := range []string{"collection content 2 1", "sink search 2 1", "source native 2 0"} {
		if i >= len(got.Parts) {
			t.Fatalf("got the parts %+v", got.Parts)
		}
		p := got.Parts[i]
		if s := fmt.Sprint(p.Kind, " ", p.Name, " ", p.Events, " ", p.Written); s != want {
			t.Errorf("part %d is %q, want %q", i, s, want)
		}
	}
	if b := got.Dollars; b == nil || b.Total <= 0 || b.Total > 0.001 || len(b.Items) < 6 {
		t.Errorf("the bill is %+v", b)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestTheConsoleNamesTheRightThatIsMissing(t *testing.T) {
	t.Parallel()
	denied := awstest.Failure(http.StatusBadRequest, "AccessDeniedException",
		"User: arn:aws:iam::1:user/ann is not authorized to perform: dynamodb:BatchGetItem on resource: shards")
	d := newAccount(t, map[string]awstest.Reply{"BatchGetItem": denied}).console(t)
	code, text := d.ask("/console/document?key=content%23a", d.token)
	if code != http.StatusForbidden || !strings.Contains(text, "lacks dynamodb:BatchGetItem") {
		t.Errorf("got %d %s", code, text)
	}
	http.DefaultClient.CloseIdleConnections()
	d.end()
}

func TestTheConsoleRefusesOtherMachinesAndLocalStacks(t *testing.T) {
	t.Parallel()
	a := newAccount(t, nil)
	a.ask(t, "console", "--listen", "0.0.0.0:0").want(t, "every address", exitUsage, "--listen 0.0.0.0:0", "ssh -L")
	a.ask(t, "console", "--listen", "127.0.0.1:x").want(t, "no port", exitUsage, "--listen 127.0.0.1:x")
	a.ask(t, "console", "--logs", "1s").want(t, "logs", exitUsage, "--logs 1s")
	lull(t, "", "console").want(t, "a lull dev", exitUsage, "--aws", "http://127.0.0.1:7070")
}

func TestTheConsoleOfADeployedStackSendsOnlyWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	for send, want := range map[bool]int{false: http.StatusNotFound, true: http.StatusOK} {
		var more []string
		if send {
			more = append(more, "--send")
		}
		d := newAccount(t, nil).console(t, more...)
		if code, text := d.ask("/console/send/forms", d.token); code != want {
			t.Errorf("--send %t: the forms are %d %.200q, want %d", send, code, text, want)
		}
		if _, text := d.ask("/console/about", d.token); strings.Contains(text, `"send":true`) != send {
			t.Errorf("--send %t: about says %s", send, text)
		}
		http.DefaultClient.CloseIdleConnections()
		if code := d.end(); code != exitOK {
			t.Errorf("--send %t: exit code %d", send, code)
		}
	}
}
