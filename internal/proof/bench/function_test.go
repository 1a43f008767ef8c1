// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
	"github.com/lullhq/lull/internal/deploy/release"
	"github.com/lullhq/lull/internal/seam/queue"
)

// weighed lists the functions whose binary size the page shows.
var weighed = []string{"receive", "index/opensearch", "prune", "dlq"}

// build builds functions with the Makefile, and returns their folder.
func build(t testing.TB, root, arch string, functions ...string) (dist string) {
	t.Helper()
	dist = t.TempDir()
	cmd := exec.CommandContext(t.Context(), "make", "build", "ARCH="+arch, "DIST="+dist,
		"functions="+strings.Join(functions, " "))
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %q: %v: %s", functions, err, text)
	}
	return dist
}

// Binaries builds the functions for arm64 and returns their sizes.
func Binaries(t testing.TB, root string) (list []Binary) {
	dist := build(t, root, "arm64", weighed...)
	for _, name := range weighed {
		info, err := os.Stat(filepath.Join(dist, name, release.Program))
		check(t, err)
		list = append(list, Binary{name, info.Size()})
	}
	return list
}

// FirstAnswer starts the function several times on this machine's architecture. This process
// simulates Lambda's runtime API and the AWS account.
func FirstAnswer(t testing.TB, root, arch string, times int) Start {
	dir := filepath.Join(build(t, root, arch, "receive"), "receive")
	vars := lambdatest.NewAccount(t).Environment()
	settings, err := json.Marshal(lambdatest.Setup("receive", vars, io.Discard).Config)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(dir, lambda.SettingsFile), settings, 0o600))
	var bodies []string
	for i := range queue.MaxEntries {
		bodies = append(bodies, Event{Doc: i, Version: 1}.body())
	}
	var walls, cpus []time.Duration
	for range times {
		batch := lambdatest.Batch(t, liveQueue, bodies...)
		wall, cpu := firstAnswer(t, filepath.Join(dir, release.Program), vars, batch)
		walls, cpus = append(walls, wall), append(cpus, cpu)
	}
	slices.Sort(walls)
	slices.Sort(cpus)
	return Start{walls[times/2], cpus[times/2]}
}

const liveQueue = "lull-search-live"

func firstAnswer(t testing.TB, program string, vars map[string]string, batch []byte) (wall, cpu time.Duration) {
	answered := make(chan string, 1)
	mux := http.NewServeMux()
	asked := 0
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > 1 {
			<-r.Context().Done() // until the process ends
			return
		}
		deadline := time.Now().Add(time.Minute).UnixMilli()
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
		w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(deadline, 10))
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn",
			"arn:aws:lambda:eu-west-1:123456789012:function:lull-search-receive")
		_, _ = w.Write(batch)
	})
	mux.HandleFunc("POST /2018-06-01/runtime/", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		answered <- r.URL.Path + " " + string(text)
	})
	api := httptest.NewServer(mux)
	defer api.Close()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = []string{"AWS_LAMBDA_RUNTIME_API=" + api.Listener.Addr().String()}
	for name, value := range vars {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	began := time.Now()
	check(t, cmd.Start())
	var text string
	select {
	case text = <-answered:
	case <-time.After(20 * time.Second):
		text = "nothing within 20 s"
	}
	wall = time.Since(began)
	_ = cmd.Process.Kill() // otherwise the process waits for the next event
	_ = cmd.Wait()         // the process was killed, and only its state matters
	if !strings.Contains(text, "/response ") || strings.Count(text, "itemIdentifier") != queue.MaxEntries {
		t.Fatalf("receive answered %.300s", text)
	}
	return wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
