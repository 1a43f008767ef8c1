// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
)

// ask sends a question to the function, and returns the status and the body of its answer.
func ask(t *testing.T, account *lambdatest.Account, log *bytes.Buffer, query string) (int, string) {
	t.Helper()
	h, err := wireSearchable(lambdatest.Setup("searchable", account.Environment(), log))
	if err != nil {
		t.Fatal(err)
	}
	event, err := json.Marshal(map[string]any{
		"rawPath": "/searchable", "rawQueryString": query,
		"requestContext": map[string]any{"http": map[string]string{"method": "GET"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Invoke(t.Context(), event)
	var answer struct {
		StatusCode int
		Body       string
	}
	if err != nil || json.Unmarshal(out, &answer) != nil {
		t.Fatalf("got %s, %v", out, err)
	}
	return answer.StatusCode, answer.Body
}

// The function reads rows by their keys, and makes no other request.
func TestSearchableOnlyReadsRows(t *testing.T) {
	t.Parallel()
	account := lambdatest.NewAccount(t)
	var log bytes.Buffer
	status, body := ask(t, account, &log, "key=content%23a&version=7")
	if status != 200 || !strings.Contains(body, `"place":"unseen"`) {
		t.Errorf("got %d %s", status, body)
	}
	if status, body = ask(t, account, &log, "key=content%23a&version=seven"); status != 400 || !strings.Contains(body, "version: ") {
		t.Errorf("got %d %s", status, body)
	}
	if all, reads := account.Calls(""), account.Calls("BatchGetItem"); all != 1 || reads != 1 {
		t.Errorf("%d requests, %d of them BatchGetItem: want one", all, reads)
	}
}

func TestSearchableSaysInItsLogThatTheTableIsMissing(t *testing.T) {
	t.Parallel()
	account := lambdatest.NewAccount(t)
	account.Lose(lambdatest.Table)
	var log bytes.Buffer
	status, body := ask(t, account, &log, "key=content%23a")
	if status != 503 || strings.Contains(body, "lull-shards") || !strings.Contains(log.String(), noTable) {
		t.Errorf("got %d %s, logged %s", status, body, &log)
	}
}

func TestSearchableIsWired(t *testing.T) {
	t.Parallel()
	testWiring(t, "searchable", wireSearchable, []string{lambda.EnvTable}, func(_ *lambda.Setup, h lambda.Handler) bool {
		u, ok := h.(*lambda.URL)
		return ok && u.Limit == lambda.SearchableTimeout
	})
}
