package ground

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/names"
)

// FlightIDs are the flights that have objects in the bucket, oldest first.
func (s *Stack) FlightIDs(t testing.TB) []flight.ID {
	t.Helper()
	var ids []flight.ID
	for cursor := ""; ; {
		page, next, err := s.Flights.List(t.Context(), cursor, 1000)
		if err != nil {
			t.Fatalf("list flights: %v", err)
		}
		for _, f := range page {
			ids = append(ids, f.ID)
		}
		if cursor = next; cursor == "" {
			slices.Sort(ids)
			return ids
		}
	}
}

// Lose deletes the messages that a flight holds, as if SQS had lost them.
func (s *Stack) Lose(t testing.TB, id flight.ID) {
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

const functionsPath = "/2015-03-31/functions/"

// BreakAlias points a function's alias at a version whose settings are wrong, so that every
// invocation fails. It is mended by the function that it returns, or when the test ends.
func (s *Stack) BreakAlias(t testing.TB, f names.Function) (restore func()) {
	t.Helper()
	path := functionsPath + s.Names.Function(Sink, f)
	var alias struct{ FunctionVersion string }
	ask := func(method, path string, in, out any) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := s.rest(ctx, method, path, in, out); err != nil {
			t.Fatal(err)
		}
	}
	ask(http.MethodGet, path+"/aliases/"+names.Alias, nil, &alias)
	var settings struct {
		Environment struct{ Variables map[string]string }
	}
	ask(http.MethodGet, path+"/configuration", nil, &settings)
	broken := map[string]string{}
	for name, value := range settings.Environment.Variables {
		broken[name] = value
	}
	broken[lambda.EnvSink] = "nowhere"
	s.configure(t, path, broken)
	var version struct{ Version string }
	ask(http.MethodPost, path+"/versions", map[string]any{}, &version)
	if version.Version == alias.FunctionVersion {
		t.Fatalf("%s: version %s was published again", f, version.Version)
	}
	point := func(to string) {
		ask(http.MethodPut, path+"/aliases/"+names.Alias, map[string]any{"FunctionVersion": to}, nil)
	}
	point(version.Version)
	done := false
	restore = func() {
		if !done {
			done = true
			point(alias.FunctionVersion)
			s.configure(t, path, settings.Environment.Variables)
		}
	}
	t.Cleanup(restore)
	return restore
}

// configure sets the environment of a function and waits until that is done.
func (s *Stack) configure(t testing.TB, path string, variables map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	in := map[string]any{"Environment": map[string]any{"Variables": variables}}
	if err := s.rest(ctx, http.MethodPut, path+"/configuration", in, nil); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		var now struct{ LastUpdateStatus, State string }
		err := s.rest(ctx, http.MethodGet, path+"/configuration", nil, &now)
		if err == nil && now.LastUpdateStatus == "Successful" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(fmt.Errorf("configure %s: %s, %s, %w", path, now.State, now.LastUpdateStatus, err))
		}
	}
}
