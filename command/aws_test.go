// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/seam/journal"
)

// account is a simulated AWS account: the settings of its stack, and the answer to each operation.
type account struct {
	settings string
	answers  map[string]awstest.Reply // by operation; every other operation succeeds with an empty answer

	mu    sync.Mutex
	calls []string
}

func newAccount(t *testing.T, answers map[string]awstest.Reply) *account {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lull.yaml")
	text := "stack: shop\nsinks: {search: {kind: opensearch, index: 'lull-{collection}', url: 'http://127.0.0.1:1'}}\n"
	save(t, path, text)
	return &account{settings: path, answers: answers}
}

const identity = `<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123456789012</Account><Arn>arn:aws:iam::123456789012:user/ann</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>`

func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, op, isJSON := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !isJSON {
		op = "GetCallerIdentity"
	}
	a.mu.Lock()
	a.calls = append(a.calls, op)
	a.mu.Unlock()
	reply, scripted := a.answers[op]
	switch {
	case !scripted && op == "GetCallerIdentity":
		reply.Body = identity
	case !scripted && op == "GetQueueUrl":
		var q struct{ QueueName string }
		_ = json.Unmarshal(body, &q) // if this fails, the answer has no name
		reply.Body = map[string]string{"QueueUrl": "http://" + r.Host + "/123456789012/" + q.QueueName}
	case !scripted && op == "GetQueueAttributes":
		reply.Body = map[string]any{"Attributes": map[string]string{"ApproximateNumberOfMessages": "3"}}
	case !scripted:
		reply.Body = map[string]any{}
	}
	text, isText := reply.Body.(string)
	if !isText {
		b, _ := json.Marshal(reply.Body) // maps of texts
		text = string(b)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	}
	if reply.Status != 0 {
		w.WriteHeader(reply.Status)
	}
	_, _ = io.WriteString(w, text)
}

// ask runs a command against the account.
func (a *account) ask(t *testing.T, args ...string) answer {
	t.Helper()
	cfg := awstest.Serve(t, a)
	var out, errs bytes.Buffer
	p := newApp(strings.NewReader(put("a", "1", "{}")), &out, &errs)
	p.target.aws = func(context.Context) (aws.Config, error) { return cfg, nil }
	code := p.run(t.Context(), append([]string{"--aws", "--config", a.settings}, args...))
	return answer{code, out.String(), errs.String()}
}

func TestAnotherStackOrAMissingPermissionIsNamed(t *testing.T) {
	t.Parallel()
	denied := awstest.Failure(http.StatusBadRequest, "AccessDeniedException",
		"User ann is not authorized to perform: it")
	for _, tt := range []struct {
		name    string
		answers map[string]awstest.Reply
		args    []string
		code    exitCode
		says    []string
	}{
		{
			"another stack",
			map[string]awstest.Reply{"GetQueueUrl": awstest.Failure(http.StatusBadRequest,
				"com.amazonaws.sqs#QueueDoesNotExist", "it does not exist")},
			[]string{"publish"},
			exitUsage,
			[]string{"find queue shop-search-live of stack shop in us-east-1", "not deployed"},
		},
		{
			"nobody",
			map[string]awstest.Reply{"GetCallerIdentity": {
				Status: http.StatusForbidden,
				Body:   `<ErrorResponse><Error><Code>InvalidClientTokenId</Code><Message>the token is invalid</Message></Error></ErrorResponse>`,
			}},
			[]string{"status"},
			exitUsage,
			[]string{"caller's identity", "InvalidClientTokenId"},
		},
		{
			"no queue may be found",
			map[string]awstest.Reply{"GetQueueUrl": denied},
			[]string{"status"},
			exitUsage,
			[]string{"find queue", "not authorized"},
		},
		{
			"nothing may be sent",
			map[string]awstest.Reply{"SendMessageBatch": denied},
			[]string{"publish"},
			exitFailed,
			[]string{"after 0 messages", "not authorized"},
		},
		{
			"the table may not be read",
			map[string]awstest.Reply{"BatchGetItem": denied},
			[]string{"explain", "content#a"},
			exitFailed,
			[]string{"explain content#a", "not authorized"},
		},
		{
			"the table is missing",
			map[string]awstest.Reply{"BatchGetItem": awstest.Failure(http.StatusBadRequest,
				"ResourceNotFoundException", "no table shop-shards")},
			[]string{"status"},
			exitFailed,
			[]string{"ResourceNotFoundException"},
		},
		{
			"queues may not be counted",
			map[string]awstest.Reply{"GetQueueAttributes": denied},
			[]string{"status"},
			exitFailed,
			[]string{"count queue", "not authorized"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, tt.answers)
			a.ask(t, tt.args...).want(t, tt.name, tt.code, tt.says...)
			for _, call := range a.calls {
				if strings.HasPrefix(call, "Update") || strings.HasPrefix(call, "Put") ||
					strings.HasPrefix(call, "Delete") {
					t.Errorf("%s was called", call)
				}
			}
		})
	}
}

// The decisions of a deployed stack are in the logs of its functions. `lull explain` reads these
// logs only with --logs, and only for the given time.
func TestExplainReadsWhatFunctionsLogged(t *testing.T) {
	t.Parallel()
	line := `{"timestamp":"2026-11-20T12:00:00Z","level":"INFO","msg":"released","function":"index","doc":"content#a","detail":"throttled: http 429"}`
	events := awstest.Reply{Body: map[string]any{
		"events": []map[string]any{{"message": line, "timestamp": 1_795_000_000_000}},
	}}
	a := newAccount(t, map[string]awstest.Reply{"FilterLogEvents": events})
	got := a.ask(t, "explain", "content#a", "--logs", "3h")
	got.want(t, "logs without a row", exitMissing)
	for _, want := range []string{"DECISIONS", "2026-11-20 12:00:00.000", "released", "index, throttled: http 429", "VPC"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is missing in\n%s", want, got.out)
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(a.calls),
		func(c string) bool { return c != "FilterLogEvents" })); n != 4 {
		t.Errorf("%d searches in %v, want one for each function", n, a.calls)
	}
	a = newAccount(t, map[string]awstest.Reply{"FilterLogEvents": events})
	if got := a.ask(t, "explain", "content#a"); strings.Contains(got.out, "DECISIONS") ||
		slices.Contains(a.calls, "FilterLogEvents") {
		t.Errorf("without --logs: %s%v", got.out, a.calls)
	}
	denied := awstest.Failure(http.StatusBadRequest, "AccessDeniedException",
		"User ann is not authorized to perform: it")
	newAccount(t, map[string]awstest.Reply{"FilterLogEvents": denied}).ask(t, "explain", "content#a", "--logs", "3h").
		want(t, "denied", exitFailed, "explain content#a", "/aws/lambda/shop-search-", "grant logs:FilterLogEvents")
	for _, wrong := range []string{"1s", "-1h", "8000h"} {
		a := newAccount(t, nil)
		a.ask(t, "explain", "content#a", "--logs", wrong).want(t, wrong, exitUsage, "--logs", "1m to 744h")
		if len(a.calls) > 0 {
			t.Errorf("--logs %s: AWS was asked %v", wrong, a.calls)
		}
	}
}

func TestADeployedStackIsFoundByItsSettings(t *testing.T) {
	t.Parallel()
	newAccount(t, nil).ask(t, "publish").want(t, "publish", exitFailed) // an empty answer to a send means that nothing was sent
	a := newAccount(t, map[string]awstest.Reply{
		"SendMessageBatch": {Body: map[string]any{"Successful": []map[string]string{{"Id": "0", "MessageId": "m"}}}},
	})
	a.ask(t, "publish").want(t, "publish", exitOK, "1 messages with 1 events sent")
	for _, wrong := range []string{
		"stack: shop\nsinks: {search: {kind: opensearch}}\n", "stack: [\n",
		"debounce: {quiet: 9m, maxWait: 1m}\n",
	} {
		save(t, a.settings, wrong)
		calls := len(a.calls)
		a.ask(t, "status").want(t, "bad settings", exitUsage, "--config", "lull.yaml")
		if len(a.calls) != calls {
			t.Errorf("AWS was asked %v", a.calls[calls:])
		}
	}
}

// unlinkedKinds are settings with kinds that this program does not link, for two collections.
const unlinkedKinds = `stack: shop
sources: {wiki: {kind: wiki, spaces: [handbook]}}
collections: {pages: {}, news: {}}
defaultCollection: pages
sinks: {search: {kind: ndjson, url: "s3://bucket/pages", suffix: .x}}
`

// A program that does not link the kinds of a stack can run the commands that open no sink and
// decode no message.
func TestAStackOfKindsThatAreNotLinkedIsOperated(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		code exitCode
		says string
	}{
		"status":                                {exitOK, "shop-search-live"},
		"list":                                  {exitOK, ""},
		"explain pages#a":                       {exitMissing, `this program has no kind "ndjson"`},
		"wait pages#a --version 1 --timeout 1s": {exitMissing, "pages#a"},
		"dead list":                             {exitOK, ""},
		"dead show 01JV0000000000000000000000":  {exitMissing, "no such dead letter"},
		"dead redrive --all --dry-run":          {exitOK, ""},
		"dead drop --all --dry-run":             {exitOK, ""},
		"cancel pages#a":                        {exitMissing, "pages#a"},
		"pause search":                          {exitOK, ""},
		"resume search":                         {exitOK, ""},
		"reset pages#a --to 1 --yes":            {exitMissing, "pages#a"},
		"rescue 01JV0000000000000000000000":     {exitFailed, "these bytes are not a manifest of lull"},
		"rebuild status":                        {exitOK, ""},

		"get pages#a":            {exitUsage, "import the package"},
		"publish":                {exitUsage, "import the package"},
		"forget pages#a --yes":   {exitUsage, "import the package"},
		"doctor":                 {exitUsage, "import the package"},
		"index install-template": {exitUsage, "import the package"},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t, nil)
			save(t, a.settings, unlinkedKinds)
			got := a.ask(t, strings.Fields(line)...)
			if got.code != want.code || !strings.Contains(got.out+got.errors, want.says) {
				t.Errorf("exit %d: %s%s\nwant exit %d and %q", got.code, got.out, got.errors, want.code, want.says)
			}
		})
	}
}

func TestWithoutARegionOrCredentialsNothingIsAsked(t *testing.T) {
	t.Parallel()
	a := newAccount(t, nil)
	for says, load := range map[string]func(context.Context) (aws.Config, error){
		"AWS_REGION": func(context.Context) (aws.Config, error) { return aws.Config{}, nil },
		"no profile": func(context.Context) (aws.Config, error) { return aws.Config{}, errors.New("no profile") },
	} {
		var out, errs bytes.Buffer
		p := newApp(strings.NewReader(""), &out, &errs)
		p.target.aws = load
		code := p.run(t.Context(), []string{"status", "--aws", "--config", a.settings})
		answer{code, out.String(), errs.String()}.want(t, says, exitUsage, says)
	}
}

func TestTheAuditHasALineForWhatChanges(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := newAudit(&out)
	for _, step := range []journal.Step{
		journal.Redriven, journal.Dropped, journal.DeadLettered, journal.Launched,
		journal.Parked, journal.Reset, journal.Admitted, journal.Held,
	} {
		log.Note(journal.Note{Step: step, Doc: "content#a", Letter: "l", Detail: "by ann"})
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 6 {
		t.Fatalf("%d lines, want six:\n%s", len(lines), out.String())
	}
	for _, line := range lines {
		var l struct {
			Audit       bool
			Key, Detail string
			DeadLetter  string `json:"dead_letter"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || !l.Audit || l.Key != "content#a" ||
			l.DeadLetter != "l" ||
			l.Detail != "by ann" {
			t.Errorf("line %s, error %v", line, err)
		}
	}
}
