// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/flight"
)

// flightIDs returns the ids of the flights that have objects in the bucket, the oldest first.
func flightIDs(t testing.TB, s *ground.Stack) []flight.ID {
	t.Helper()
	all, _, err := s.Flights.List(t.Context(), "", math.MaxInt32)
	ground.Must(t, err)
	ids := make([]flight.ID, len(all))
	for i, f := range all {
		ids[i] = f.ID
	}
	return ids
}

// loseMessages deletes the messages that a flight holds, as if SQS had lost them.
func loseMessages(t testing.TB, s *ground.Stack, id flight.ID) {
	t.Helper()
	m, err := s.Flights.Get(t.Context(), id)
	if err != nil {
		t.Fatalf("get manifest: %v", err)
	}
	for _, r := range m.Records {
		if _, err := s.SQS.DeleteMessage(t.Context(),
			&sqs.DeleteMessageInput{QueueUrl: &s.Live, ReceiptHandle: &r.Message.Receipt}); err != nil {
			t.Fatalf("delete a message: %v", err)
		}
	}
}

// breakAlias points a function's alias to a version with wrong settings, so that every invocation
// fails. The returned function restores the alias. If the test does not call it, the alias is
// restored at the end of the test.
func breakAlias(t testing.TB, s *ground.Stack, f names.Function) (restore func()) {
	t.Helper()
	var alias struct{ FunctionVersion string }
	s.Lambda(t, f, http.MethodGet, "/aliases/"+names.Alias, nil, &alias)
	var settings struct {
		Environment struct{ Variables map[string]string }
	}
	s.Lambda(t, f, http.MethodGet, "/configuration", nil, &settings)
	broken := maps.Clone(settings.Environment.Variables)
	broken[lambda.EnvSink] = "nowhere"
	configure(t, s, f, broken)
	var version struct{ Version string }
	s.Lambda(t, f, http.MethodPost, "/versions", map[string]any{}, &version)
	if version.Version == alias.FunctionVersion {
		t.Fatalf("%s: version %s was published again", f, version.Version)
	}
	point := func(to string) { ground.Must(t, s.Point(context.WithoutCancel(t.Context()), f, to)) }
	point(version.Version)
	restore = sync.OnceFunc(func() {
		point(alias.FunctionVersion)
		configure(t, s, f, settings.Environment.Variables)
	})
	t.Cleanup(restore)
	return restore
}

// configure sets the environment of a function and waits until that is done.
func configure(t testing.TB, s *ground.Stack, f names.Function, variables map[string]string) {
	t.Helper()
	ground.Must(t, s.Configure(context.WithoutCancel(t.Context()), f,
		map[string]any{"Environment": map[string]any{"Variables": variables}}))
}

// waitUntilDead waits until a new flight has failed because of bad settings: the first try and two
// retries, each a lease apart. After that, nothing works on the flight. The argument known lists
// older flights, because comparisons of prune and flights of earlier tests may fail in the same
// way.
func waitUntilDead(t testing.TB, s *ground.Stack, known []flight.ID) {
	t.Helper()
	ground.Until(t, "a new flight has been tried three times", func() (bool, string) {
		counts := s.Counts(t)
		tries := make(map[string]int)
		for _, d := range s.Decisions {
			if d.Step == "bad settings" && d.Flight != "" && !slices.Contains(known, flight.ID(d.Flight)) {
				tries[d.Flight]++
			}
		}
		manifests := flightIDs(t, s)
		return slices.ContainsFunc(manifests, func(f flight.ID) bool { return tries[string(f)] >= 3 }),
			fmt.Sprint(tries, counts)
	})
}

// freezeTable halts the process of LocalStack's table at any point of its work, like Freeze halts
// the sink.
func freezeTable(t testing.TB) (thaw func()) {
	t.Helper()
	ours := []byte("LULL_E2E_SERVER=" + filepath.Join(os.Getenv("LULL_E2E_RUN"), "localstack") + "\x00")
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	ground.Must(t, err)
	for _, path := range environments {
		environment, _ := os.ReadFile(path) // fails if the process has ended or belongs to another user
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if bytes.Contains(append(environment, 0), ours) && bytes.Contains(command, []byte("DynamoDBLocal")) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			ground.Must(t, err)
			return ground.Halt(t, pid)
		}
	}
	t.Fatal("find the process of the table: there is none")
	return nil
}

// killFunction kills every running process of a function, and reports how many there were.
func killFunction(t testing.TB, name string) int {
	t.Helper()
	killed, err := here.KillProcesses(t.Context(), name)
	ground.Must(t, err)
	return killed
}
