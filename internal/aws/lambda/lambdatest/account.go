// SPDX-License-Identifier: Apache-2.0

package lambdatest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// Account is a fake AWS account. The table of the account has no rows, and its queues accept every
// send and delete. The state machine starts executions, and the bucket stores objects. A test can
// make each resource missing.
type Account struct {
	server *httptest.Server

	mu      sync.Mutex
	missing []string
	objects map[string][]byte
	asked   []string
}

// The resources that a test can make missing.
const (
	Table   = "DynamoDB"
	Queue   = "AmazonSQS"
	Machine = "AWSStepFunctions"
	Bucket  = "S3"
)

// NewAccount starts the server of an account, which ends with the test.
func NewAccount(t testing.TB) *Account {
	t.Helper()
	a := &Account{objects: map[string][]byte{}}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	// The clients of functions never close their connections.
	t.Cleanup(a.server.CloseClientConnections)
	return a
}

// Environment returns a complete environment for functions that use this account.
func (a *Account) Environment() map[string]string {
	vars := Environment()
	vars["AWS_ENDPOINT_URL"] = a.server.URL
	return vars
}

// Lose makes resources of the account missing.
func (a *Account) Lose(resources ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missing = append(a.missing, resources...)
}

// Calls returns how many requests so far have a name that contains the text. Examples of names are
// "AmazonSQS.DeleteMessageBatch" and "S3.PUT /bucket/key".
func (a *Account) Calls(text string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, call := range a.asked {
		if strings.Contains(call, text) {
			n++
		}
	}
	return n
}

// ServeHTTP answers one request.
func (a *Account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client hung up while it sent the request
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	service, operation, json := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	service, _, _ = strings.Cut(service, "_")
	if !json {
		service, operation = Bucket, r.Method+" "+r.URL.Path
	}
	a.asked = append(a.asked, service+"."+operation)
	lost := slices.Contains(a.missing, service)
	if service == Bucket {
		a.object(w, r, body, lost)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if lost {
		w.WriteHeader(http.StatusBadRequest)
		code := map[string]string{
			Table: "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException",
			Queue: "com.amazonaws.sqs#QueueDoesNotExist", Machine: "StateMachineDoesNotExist",
		}[service]
		_, _ = fmt.Fprintf(w, `{"__type":%q,"message":"it is not there"}`, code)
		return
	}
	_, _ = w.Write(answer(body))
}

// answer returns a successful answer that is valid for every operation of the JSON protocols. Each
// client reads only the fields that it knows.
func answer(body []byte) []byte {
	entries := []map[string]string{}
	for _, id := range gjson.GetBytes(body, "Entries.#.Id").Array() {
		entries = append(entries, map[string]string{"Id": id.Str, "MessageId": id.Str, "MD5OfMessageBody": ""})
	}
	text, err := json.Marshal(map[string]any{
		"Responses": map[string]any{}, "UnprocessedKeys": map[string]any{}, // BatchGetItem
		"Items": []any{}, "Count": 0, // Scan, Query
		"executionArn": "arn", "startDate": time.Now().Unix(), // StartExecution
		"Successful": entries, // batches of SQS
	})
	if err != nil {
		panic(err) // cannot happen: the answer contains only texts and numbers
	}
	return text
}

// object answers a request to S3. The fake bucket stores and returns objects. Every other operation
// succeeds without an effect.
func (a *Account) object(w http.ResponseWriter, r *http.Request, body []byte, lost bool) {
	fail := func(status int, code string) {
		w.WriteHeader(status)
		_ = xml.NewEncoder(w).Encode(struct {
			XMLName xml.Name `xml:"Error"`
			Code    string
		}{Code: code})
	}
	object, found := a.objects[r.URL.Path]
	switch {
	case lost:
		fail(http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodPut:
		a.objects[r.URL.Path] = body
	case r.Method == http.MethodGet && r.URL.Query().Has("list-type"):
		_, _ = io.WriteString(w, `<ListBucketResult></ListBucketResult>`)
	case r.Method == http.MethodGet && found:
		_, _ = w.Write(object)
	case r.Method == http.MethodGet:
		fail(http.StatusNotFound, "NoSuchKey")
	default:
		_, _ = io.WriteString(w, `<DeleteResult></DeleteResult>`)
	}
}
