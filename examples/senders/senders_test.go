// SPDX-License-Identifier: Apache-2.0

// Package senders_test runs the senders in TypeScript and Python against a stub of SQS, and decodes
// their messages as receive does.
package senders_test

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // SQS answers with the MD5 of a body
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config/yamlfile"
	_ "github.com/lullhq/lull/sink/builtin"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stub is an SQS that keeps what it is sent. If refuses is set, it refuses one entry of each batch.
type stub struct {
	refuses bool

	mu     sync.Mutex
	bodies []string
	faults []string
}

type entry struct {
	Id, MessageBody string
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var sent struct {
		QueueUrl string
		entry
		Entries []entry
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := json.NewDecoder(r.Body).Decode(&sent)
	if err != nil || !strings.HasSuffix(sent.QueueUrl, "/search-search-live") {
		s.faults = append(s.faults, fmt.Sprintf("the queue %q: %v", sent.QueueUrl, err))
	}
	took := func(e entry) map[string]any {
		s.bodies = append(s.bodies, e.MessageBody)
		sum := md5.Sum([]byte(e.MessageBody)) //nolint:gosec // as above
		return map[string]any{"Id": e.Id, "MessageId": "m-" + e.Id, "MD5OfMessageBody": hex.EncodeToString(sum[:])}
	}
	var answer any
	switch target := r.Header.Get("X-Amz-Target"); target {
	case "AmazonSQS.SendMessage":
		answer = took(sent.entry)
	case "AmazonSQS.SendMessageBatch":
		if len(sent.Entries) > 10 {
			s.faults = append(s.faults, fmt.Sprintf("%d entries in a batch", len(sent.Entries)))
		}
		ok, failed := []any{}, []any{}
		for i, e := range sent.Entries {
			if s.refuses && i == 1 {
				failed = append(failed, map[string]any{"Id": e.Id, "Code": "InternalError", "SenderFault": false})
				continue
			}
			ok = append(ok, took(e))
		}
		answer = map[string]any{"Successful": ok, "Failed": failed}
	default:
		s.faults = append(s.faults, "the call "+target)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.faults = append(s.faults, err.Error())
	}
}

// run runs the sender of a language, which sends to the stub.
func (s *stub) run(t *testing.T, command ...string) error {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	return run(t, server.URL, server.URL+"/111122223333/search-search-live", command...)
}

// run runs the sender of a language, which sends to a queue of the SQS at endpoint.
func run(t *testing.T, endpoint, queue string, command ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], append(command[1:], queue)...)
	c.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+endpoint, "AWS_REGION=eu-west-1", "AWS_DEFAULT_REGION=eu-west-1",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true", "AWS_MAX_ATTEMPTS=1")
	text, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

// senders returns the command of each language. `make test-senders` installs the SDKs and names
// their folder.
func senders(t *testing.T) map[string][]string {
	t.Helper()
	folder := os.Getenv("LULL_SENDERS")
	if folder == "" {
		t.Skip("LULL_SENDERS is not set: make test-senders installs the SDKs and runs this test")
	}
	return map[string][]string{
		"TypeScript": {"node", filepath.Join(folder, "js", "try.mjs")},
		"Python":     {filepath.Join(folder, "venv", "bin", "python"), filepath.Join(folder, "try.py")},
	}
}

func decoder(t *testing.T) *source.Set {
	t.Helper()
	text, err := os.ReadFile("lull.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := yamlfile.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	c.Complete()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	set, err := source.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// judge decodes what a sender sent as receive does.
func judge(t *testing.T, set *source.Set, bodies []string) {
	t.Helper()
	var got []event.Event
	for _, body := range bodies {
		for _, r := range set.Decode(event.Message{Body: body}) {
			if r.Invalid != nil || r.Skip != "" {
				t.Fatalf("%s: %v, skipped: %q", body, r.Invalid, r.Skip)
			}
			got = append(got, r.Event)
		}
	}
	if len(got) != 14 {
		t.Fatalf("got %d events, want 14", len(got))
	}
	put, del := got[0], got[1]
	if put.Doc != "articles#f4c394f9" || put.Op != event.Put || put.Data != `{"title":"Renew a bus pass"}` &&
		put.Data != `{"title": "Renew a bus pass"}` {
		t.Errorf("the first event is %+v", put)
	}
	if del.Doc != put.Doc || del.Op != event.Delete || del.Key <= put.Key {
		t.Errorf("the delete is %+v, want a newer version of %s", del, put.Doc)
	}
	for i, e := range got[2:] {
		if want := event.DocID(fmt.Sprintf("articles#a-%d", i)); e.Doc != want || e.Op != event.Put {
			t.Errorf("event %d of the batch is %+v, want a put of %s", i, e, want)
		}
	}
}

func TestSendersSendEventsThatReceiveDecodes(t *testing.T) {
	t.Parallel()
	commands, set := senders(t), decoder(t)
	for language, command := range commands {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			var s stub
			if err := s.run(t, command...); err != nil || len(s.faults) > 0 {
				t.Fatal(err, s.faults)
			}
			judge(t, set, s.bodies)
		})
	}
}

func TestSendersFailIfSQSRefusesAPartOfABatch(t *testing.T) {
	t.Parallel()
	for language, command := range senders(t) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			s := stub{refuses: true}
			if err := s.run(t, command...); err == nil || !strings.Contains(err.Error(), "SQS refused 1 of 10 events") {
				t.Errorf("got %v, want an error that says how many events were refused", err)
			}
		})
	}
}

// The SDKs of both languages speak to an emulator of the whole of SQS, too: LULL_TEST_AWS names it.
func TestSendersSendToAnEmulator(t *testing.T) {
	t.Parallel()
	endpoint := os.Getenv("LULL_TEST_AWS")
	if endpoint == "" {
		t.Skip("LULL_TEST_AWS is not set: make e2e names an emulator")
	}
	set := decoder(t)
	client := sqs.New(sqs.Options{
		BaseEndpoint: &endpoint, Region: "eu-west-1",
		HTTPClient:  &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
	for language, command := range senders(t) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			name := "senders-" + strings.ToLower(language)
			made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				ctx := context.WithoutCancel(t.Context())
				_, _ = client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: made.QueueUrl})
			}()
			if err := run(t, endpoint, *made.QueueUrl, command...); err != nil {
				t.Fatal(err)
			}
			var bodies []string
			for len(bodies) < 14 {
				got, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
					QueueUrl: made.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 5,
				})
				if err != nil || len(got.Messages) == 0 {
					t.Fatalf("the queue has %d messages, want 14: %v", len(bodies), err)
				}
				for _, m := range got.Messages {
					bodies = append(bodies, *m.Body)
				}
			}
			slices.SortFunc(bodies, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
			judge(t, set, bodies)
		})
	}
}

// place returns the place of a message among those that a sender sends, because a standard queue
// keeps no order.
func place(body string) int {
	_, rest, article := strings.Cut(body, "\"a-")
	digits, _, _ := strings.Cut(rest, "\"")
	n, err := strconv.Atoi(digits)
	switch {
	case article && err == nil:
		return 2 + n
	case strings.Contains(body, "deleted"):
		return 1
	default:
		return 0
	}
}
