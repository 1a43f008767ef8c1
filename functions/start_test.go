// Package functions_test measures the functions as the platform starts them.
package functions_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/config"
)

// invocation is an event that every function answers without a request of its own: a queue that is
// none of theirs, no state of a flight. Prune knows no such event; it asks a table that nobody
// serves.
const invocation = `{"Records":[{"messageId":"m","receiptHandle":"r","body":"x","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:1:other",
"attributes":{"SentTimestamp":"1777888800123","ApproximateReceiveCount":"1","ApproximateFirstReceiveTimestamp":"1777888800123"}}]}`

// runtimeAPI is Lambda's Runtime API for one invocation. ready is closed when the function asks for
// it, answered when it has answered.
type runtimeAPI struct {
	ready, answered   chan struct{}
	first, firstReply sync.Once
}

func (r *runtimeAPI) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if strings.HasSuffix(req.URL.Path, "/invocation/next") {
		served := true
		r.first.Do(func() { close(r.ready); served = false })
		if served {
			<-req.Context().Done() // nothing more to do: the function waits until it is killed
			return
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(5*time.Second).UnixMilli(), 10))
		_, _ = io.WriteString(w, invocation)
		return
	}
	_, _ = io.Copy(io.Discard, req.Body)
	w.WriteHeader(http.StatusAccepted)
	r.firstReply.Do(func() { close(r.answered) })
}

// BenchmarkColdStart starts each function as a process: ms-to-ready until it asks for its first
// event, ns/op until it has answered.
func BenchmarkColdStart(b *testing.B) {
	settings := config.Default()
	sink := settings.Sinks["search"]
	sink.Kind, sink.URL = "opensearch", "http://127.0.0.1:9"
	settings.Sinks["search"] = sink
	text, err := json.Marshal(settings)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"receive", "index", "dlq"} {
		dir := b.TempDir()
		program := filepath.Join(dir, "bootstrap")
		build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-tags", "lambda.norpc", "-ldflags",
			"-s -w", "-o", program, "./"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("build %s: %v\n%s", name, err, out)
		}
		if err := os.WriteFile(filepath.Join(dir, lambda.SettingsFile), text, 0o644); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			var ready time.Duration
			for b.Loop() {
				ready += start(b, program)
			}
			b.ReportMetric(float64(ready.Microseconds())/1000/float64(b.N), "ms-to-ready")
		})
	}
}

// start runs the program until it has answered one invocation and returns how long it took to ask
// for it.
func start(b *testing.B, program string) time.Duration {
	b.Helper()
	api := &runtimeAPI{ready: make(chan struct{}), answered: make(chan struct{})}
	server := httptest.NewServer(api)
	defer server.Close()
	cmd := exec.CommandContext(b.Context(), program)
	cmd.Env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(server.URL, "http://"),
		"AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		lambda.EnvSink + "=search", lambda.EnvTable + "=shards", lambda.EnvBucket + "=bucket",
		lambda.EnvLiveQueue + "=https://sqs/1/live", lambda.EnvBulkQueue + "=https://sqs/1/bulk",
		lambda.EnvDeadQueue + "=https://sqs/1/dead",
		lambda.EnvStateMachine + "=arn:aws:states:eu-west-1:1:stateMachine:lull-search",
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		server.CloseClientConnections()
	}()
	var ready time.Duration
	for _, wait := range []chan struct{}{api.ready, api.answered} {
		select {
		case <-wait:
		case <-time.After(10 * time.Second):
			b.Fatal("the function did not ask for an event, or did not answer")
		}
		if ready == 0 {
			ready = time.Since(began)
		}
	}
	return ready
}
