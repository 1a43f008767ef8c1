// SPDX-License-Identifier: Apache-2.0

// Package awstest lets tests talk to a server with the protocols of AWS. A test scripts the server
// to get answers that no emulator gives: throttling, unprocessed entries, lost answers. For all
// other answers, tests use an emulator.
package awstest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// EndpointEnv is the name of the environment variable with the endpoint of an emulator, such as
// http://127.0.0.1:4566.
const EndpointEnv = "LULL_TEST_AWS"

// Call is one request in one of the JSON protocols (DynamoDB, SQS, Step Functions).
type Call struct {
	Operation string // "UpdateItem"
	Body      []byte
}

// Into decodes the body of the request.
func (c Call) Into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(c.Body, v); err != nil {
		t.Errorf("decode %s: %v", c.Operation, err)
	}
}

// Reply is the answer of the server. Status 0 means 200. If Body is a string, it is sent unchanged,
// otherwise as JSON.
type Reply struct {
	Status int
	Body   any
}

// Failure returns an error in the form of the JSON protocols. The code is sent unchanged, so it may
// have a namespace.
func Failure(status int, code, message string) Reply {
	return Reply{Status: status, Body: map[string]any{"__type": code, "message": message}}
}

// JSON starts a server that answers requests in the JSON protocols with f, and returns settings for
// clients of that server. f may be called concurrently. The server ends with the test.
func JSON(t testing.TB, f func(Call) Reply) aws.Config {
	t.Helper()
	return Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		reply := f(Call{Operation: op, Body: body})
		out, ok := reply.Body.(string)
		if !ok {
			text, err := json.Marshal(reply.Body)
			if err != nil {
				t.Errorf("encode reply: %v", err)
			}
			out = string(text)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if reply.Status != 0 {
			w.WriteHeader(reply.Status)
		}
		_, _ = io.WriteString(w, out)
	}))
}

// Serve starts a server and returns settings for clients of that server. The server ends with the
// test. The address of the server does not look like an address of this machine, so that requests
// have the same time-outs as with AWS.
func Serve(t testing.TB, h http.Handler) aws.Config {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return at(t, "http://aws.example", func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
	})
}

// Emulator returns settings for clients of the emulator that LULL_TEST_AWS names, and skips the
// test if the variable is not set.
func Emulator(t testing.TB) aws.Config {
	t.Helper()
	endpoint := os.Getenv(EndpointEnv)
	if endpoint == "" {
		t.Skipf("%s is not set: start an emulator (localstack/start.sh) and set it to the endpoint", EndpointEnv)
	}
	return at(t, endpoint, nil)
}

func at(t testing.TB, endpoint string,
	dial func(ctx context.Context, network, addr string) (net.Conn, error),
) aws.Config {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	return aws.Config{
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
		BaseEndpoint: aws.String(endpoint),
		HTTPClient:   &http.Client{Transport: transport},
	}
}

// Name returns a name for a resource that no other test uses.
func Name(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(t.Name()))
	return "t-" + name[:min(len(name), 30)] + "-" + strings.ToLower(rand.Text()[:10])
}

// Context returns a context that ends with the test, and after a minute at the latest. So an
// emulator that hangs does not block the tests.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Lines decodes lines of JSON, such as the log lines of a function.
func Lines(t testing.TB, out *bytes.Buffer) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, m)
	}
	return all
}
