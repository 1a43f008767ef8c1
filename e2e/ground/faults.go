package ground

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/names"
)

// FlightIDs are the flights that have objects in the bucket, oldest first.
func (s *Stack) FlightIDs(t testing.TB) []flight.ID {
	t.Helper()
	all, _, err := s.Flights.List(t.Context(), "", math.MaxInt32)
	must(t, err)
	ids := make([]flight.ID, len(all))
	for i, f := range all {
		ids[i] = f.ID
	}
	return ids
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
// invocation fails. The function that it returns restores it; otherwise the end of the test does.
func (s *Stack) BreakAlias(t testing.TB, f names.Function) (restore func()) {
	t.Helper()
	path := functionsPath + s.Names.Function(Sink, f)
	var alias struct{ FunctionVersion string }
	ask := func(method, path string, in, out any) {
		t.Helper()
		must(t, s.rest(context.WithoutCancel(t.Context()), method, path, in, out))
	}
	ask(http.MethodGet, path+"/aliases/"+names.Alias, nil, &alias)
	var settings struct {
		Environment struct{ Variables map[string]string }
	}
	ask(http.MethodGet, path+"/configuration", nil, &settings)
	broken := maps.Clone(settings.Environment.Variables)
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
	restore = sync.OnceFunc(func() {
		point(alias.FunctionVersion)
		s.configure(t, path, settings.Environment.Variables)
	})
	t.Cleanup(restore)
	return restore
}

// configure sets the environment of a function and waits until that is done.
func (s *Stack) configure(t testing.TB, path string, variables map[string]string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	in := map[string]any{"Environment": map[string]any{"Variables": variables}}
	must(t, s.rest(ctx, http.MethodPut, path+"/configuration", in, nil))
	saw, ok := wait(ctx, Patience, func() (bool, string) {
		var now struct{ LastUpdateStatus, State string }
		err := s.rest(ctx, http.MethodGet, path+"/configuration", nil, &now)
		return err == nil && now.LastUpdateStatus == "Successful", fmt.Sprint(now, err)
	})
	if !ok {
		t.Fatalf("configure %s: %s", path, saw)
	}
}
