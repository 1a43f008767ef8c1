package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/queue"
)

// Functions are lull's, by name.
var Functions = []string{"receive", "index", "prune", "dlq"}

// Binary is a function as it is deployed.
type Binary struct {
	Name  string
	Bytes int64 // for arm64
}

// goBuild builds a function as the Makefile does.
func goBuild(ctx context.Context, root, name, arch, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags",
		"-s -w -buildid=",
		"-o", out, "./functions/"+name)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", name, err, text)
	}
	return nil
}

// Binaries builds the functions for arm64 and weighs them.
func Binaries(ctx context.Context, root, dir string) ([]Binary, error) {
	var list []Binary
	for _, name := range Functions {
		out := filepath.Join(dir, name+"-arm64")
		if err := goBuild(ctx, root, name, "arm64", out); err != nil {
			return nil, err
		}
		info, err := os.Stat(out)
		if err != nil {
			return nil, fmt.Errorf("weigh %s: %w", name, err)
		}
		list = append(list, Binary{name, info.Size()})
	}
	return list, nil
}

// Start is a cold start of receive: from the process to its first answer, a batch of ten messages
// that is admitted and held.
type Start struct {
	Wall, CPU time.Duration // medians
}

// FirstAnswer starts the function several times beside a runtime API and services of this process,
// on this machine's architecture.
func FirstAnswer(ctx context.Context, root, dir, arch string, times int) (Start, error) {
	if err := goBuild(ctx, root, "receive", arch, filepath.Join(dir, "bootstrap")); err != nil {
		return Start{}, err
	}
	c := config.Default()
	s := c.Sinks[sinkName]
	s.Kind, s.URL = config.SinkOpenSearch, "https://search.example.org"
	c.Sinks[sinkName] = s
	settings, err := json.Marshal(c)
	if err != nil {
		return Start{}, fmt.Errorf("encode settings: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, lambda.SettingsFile), settings, 0o600); err != nil {
		return Start{}, fmt.Errorf("write settings: %w", err)
	}
	var walls, cpus []time.Duration
	for range times {
		wall, cpu, err := firstAnswer(ctx, dir)
		if err != nil {
			return Start{}, err
		}
		walls, cpus = append(walls, wall), append(cpus, cpu)
	}
	slices.Sort(walls)
	slices.Sort(cpus)
	return Start{walls[times/2], cpus[times/2]}, nil
}

func firstAnswer(ctx context.Context, dir string) (wall, cpu time.Duration, err error) {
	now := time.Now()
	batch, err := payload(queue.MaxEntries, func(i int) queue.Message {
		return queue.Message{
			ID: strconv.Itoa(i), Receipt: "r" + strconv.Itoa(i),
			Body: Event{Doc: i, Version: 1}.body(), Sent: now,
		}
	})
	if err != nil {
		return 0, 0, err
	}
	answered := make(chan string, 1)
	api := http.NewServeMux()
	asked := 0
	api.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > 1 {
			<-r.Context().Done() // until the process ends
			return
		}
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(now.Add(time.Minute).UnixMilli(), 10))
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn",
			"arn:aws:lambda:us-east-1:123456789012:function:lull-search-receive")
		_, _ = w.Write(batch)
	})
	api.HandleFunc("POST /2018-06-01/runtime/", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		answered <- r.URL.Path + " " + string(text)
	})
	net1, stop1, err := serve(api)
	if err != nil {
		return 0, 0, err
	}
	defer stop1()
	aws := newInprocess()
	net2, stop2, err := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, err := aws.Do(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", a.Header.Get("Content-Type"))
		w.WriteHeader(a.StatusCode)
		_, _ = io.Copy(w, a.Body)
		_ = a.Body.Close() // it is in memory
	}))
	if err != nil {
		return 0, 0, err
	}
	defer stop2()
	const queues = "https://sqs.us-east-1.amazonaws.com/123456789012/lull-search-"
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "bootstrap"))
	cmd.Env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + net1, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=AKIAEXAMPLE",
		"AWS_SECRET_ACCESS_KEY=example",
		"AWS_ENDPOINT_URL=http://" + net2, lambda.EnvSink + "=" + sinkName, lambda.EnvTable + "=shards",
		lambda.EnvBucket + "=lull",
		lambda.EnvLiveQueue + "=" + queues + "live", lambda.EnvBulkQueue + "=" + queues + "bulk",
		lambda.EnvDeadQueue + "=" + queues + "dead",
		lambda.EnvStateMachine + "=arn:aws:states:us-east-1:123456789012:stateMachine:lull-search",
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, fmt.Errorf("start receive: %w", err)
	}
	var text string
	select {
	case text = <-answered:
	case <-time.After(20 * time.Second):
		err = fmt.Errorf("receive gave no answer within 20 s")
	}
	wall = time.Since(began)
	_ = cmd.Process.Kill() // it would wait for the next event
	_ = cmd.Wait()         // killed: its state is what counts
	if err == nil && (!strings.Contains(text, "/response ") ||
		strings.Count(text, "itemIdentifier") != queue.MaxEntries) {
		err = fmt.Errorf("receive answered %.300s", text)
	}
	return wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), err
}

// serve starts a server for a moment.
func serve(h http.Handler) (address string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen: %w", err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		_ = s.Serve(l) // ends with Close
		close(done)
	}()
	return l.Addr().String(), func() {
		_ = s.Close() // nothing is left to answer
		<-done
	}, nil
}
