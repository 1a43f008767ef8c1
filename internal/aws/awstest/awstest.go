// Package awstest lets tests use AWS's protocols. A test scripts a server to get answers that no
// emulator gives (throttling, unprocessed entries, lost answers). For everything else, tests use a
// real emulator.
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

// EndpointEnv names the environment variable that holds an emulator's endpoint, such as
// http://127.0.0.1:4566.
const EndpointEnv = "LULL_TEST_AWS"

// Call is one request of the JSON protocols (DynamoDB, SQS, Step Functions).
type Call struct {
	Operation string // "UpdateItem"
	Body      []byte
}

// Into decodes the request's body.
func (c Call) Into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(c.Body, v); err != nil {
		t.Errorf("decode %s: %v", c.Operation, err)
	}
}

// Reply is the server's answer. Status 0 means 200. A string Body is sent unchanged, any other Body
// as JSON.
type Reply struct {
	Status int
	Body   any
}

// Failure is an error as the JSON protocols spell one: the code as given, with any namespace.
func Failure(status int, code, message string) Reply {
	return Reply{Status: status, Body: map[string]any{"__type": code, "message": message}}
}

// JSON starts a server that answers the JSON protocols with f, which may be called concurrently,
// and returns settings for clients of it. The server ends with the test.
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

// Serve starts a server and returns settings for clients of it. The server ends with the test. Its
// address is not one of this machine, so that requests have no more time than they have with AWS.
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

// Name is a resource name that no other test has.
func Name(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(t.Name()))
	return "t-" + name[:min(len(name), 30)] + "-" + strings.ToLower(rand.Text()[:10])
}

// Context ends with the test, and at the latest after a minute: an emulator that hangs must not
// hang the tests.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Lines decodes lines of JSON, such as a function writes them.
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
