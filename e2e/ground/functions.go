// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	logs "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"

	"github.com/lullhq/lull/internal/deploy/names"
)

// function sends a request about a function to Lambda.
func (s *Stack) function(ctx context.Context, f names.Function, method, path string, in, out any) error {
	path = "/2015-03-31/functions/" + s.Names.Function(Sink, f) + path
	return s.json(ctx, "lambda", method, path, in, out, http.Header{"Content-Type": {"application/json"}})
}

// configuration is the part of a function's configuration that this package changes.
type configuration struct {
	Timeout    int
	MemorySize int
}

// Former is how a function was before [Stack.KillForAWhile] changed it.
type Former struct {
	Function      names.Function `json:"function"`
	Version       string         `json:"version"` // of the alias
	Configuration configuration  `json:"configuration"`
}

// Former returns how a function is.
func (s *Stack) Former(ctx context.Context, f names.Function) (was Former, err error) {
	var alias struct{ FunctionVersion string }
	was.Function = f
	err = errors.Join(s.function(ctx, f, http.MethodGet, "/aliases/"+names.Alias, nil, &alias),
		s.function(ctx, f, http.MethodGet, "/configuration", nil, &was.Configuration))
	was.Version = alias.FunctionVersion
	return was, err
}

// Restore points the alias of a function to its former version, and restores its configuration.
func (s *Stack) Restore(ctx context.Context, was Former) error {
	return errors.Join(s.Point(ctx, was.Function, was.Version), s.Configure(ctx, was.Function, was.Configuration))
}

// KillForAWhile kills the invocations of a function for some time, as Lambda kills an invocation
// that outlives its timeout. It points the alias to a version with the shortest timeout and the
// least memory. At the end it restores the function, also if ctx ends. If the program is killed,
// the caller restores it later.
func (s *Stack) KillForAWhile(ctx context.Context, was Former, length time.Duration) (err error) {
	f := was.Function
	defer func() { err = errors.Join(err, s.Restore(context.WithoutCancel(ctx), was)) }()
	if err := s.Configure(ctx, f, configuration{Timeout: 1, MemorySize: 128}); err != nil {
		return err
	}
	var short struct{ Version string }
	if err := s.function(ctx, f, http.MethodPost, "/versions", map[string]any{}, &short); err != nil {
		return err
	}
	if err := s.Point(ctx, f, short.Version); err != nil {
		return err
	}
	select {
	case <-time.After(length):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Point points the alias of a function to a version.
func (s *Stack) Point(ctx context.Context, f names.Function, version string) error {
	in := map[string]any{"FunctionVersion": version}
	return s.function(ctx, f, http.MethodPut, "/aliases/"+names.Alias, in, nil)
}

// Republish publishes the code and the settings of a function again, and returns the version.
// CloudFormation does not know that version, so a deploy does not delete it.
func (s *Stack) Republish(t testing.TB, f names.Function) (version string) {
	t.Helper()
	// Lambda publishes a version only if something has changed since the version before.
	description := "kept at " + time.Now().Format(time.RFC3339Nano)
	Must(t, s.Configure(t.Context(), f, map[string]any{"Description": description}))
	var kept struct{ Version string }
	s.Lambda(t, f, http.MethodPost, "/versions", map[string]any{}, &kept)
	return kept.Version
}

// Share lets another version take a share of the invocations of a function's alias, 0 to 1. At the
// end of the test, or with the share 0, the alias has one version.
func (s *Stack) Share(t testing.TB, f names.Function, version string, share float64) {
	t.Helper()
	weights := map[string]float64{}
	if share > 0 {
		weights[version] = share
		t.Cleanup(func() { s.Share(t, f, version, 0) })
	}
	s.Lambda(t, f, http.MethodPut, "/aliases/"+names.Alias,
		map[string]any{"RoutingConfig": map[string]any{"AdditionalVersionWeights": weights}}, nil)
}

// streamVersion matches the version in the name of a function's log stream.
var streamVersion = regexp.MustCompile(`\[([0-9]+)\]`)

// Ran returns the number of log streams of each version of a function. Every environment of a
// version has its own stream.
func (s *Stack) Ran(t testing.TB, f names.Function) map[string]int {
	t.Helper()
	ran := make(map[string]int)
	group := s.Names.FunctionLog(Sink, f)
	pages := logs.NewDescribeLogStreamsPaginator(s.logs, &logs.DescribeLogStreamsInput{LogGroupName: &group})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		Must(t, err)
		for _, stream := range page.LogStreams {
			if m := streamVersion.FindStringSubmatch(aws.ToString(stream.LogStreamName)); m != nil {
				ran[m[1]]++
			}
		}
	}
	return ran
}

// Configure changes a function, and waits until Lambda has applied the change.
func (s *Stack) Configure(ctx context.Context, f names.Function, to any) error {
	if err := s.function(ctx, f, http.MethodPut, "/configuration", to, nil); err != nil {
		return err
	}
	return s.Eventually(ctx, "the configuration of "+string(f)+" has changed", func() (bool, string) {
		var now struct{ LastUpdateStatus string }
		err := s.function(ctx, f, http.MethodGet, "/configuration", nil, &now)
		return err == nil && now.LastUpdateStatus == "Successful", fmt.Sprint(now, err)
	})
}

// Eventually is [Until] for code that is not a test: it returns an error if Patience ends first.
func (g *Ground) Eventually(ctx context.Context, what string, ask func() (yes bool, saw string)) error {
	saw, ok := wait(Patience, func() (bool, string) {
		if ctx.Err() != nil {
			return true, ""
		}
		return ask()
	})
	if !ok {
		return fmt.Errorf("not within %s: %s; last seen: %s", Patience, what, saw)
	}
	return ctx.Err()
}

// KillProcesses kills every running process of a function on LocalStack of run.sh, and returns
// their number.
func (g *Ground) KillProcesses(ctx context.Context, function string) (killed int, err error) {
	script := filepath.Join(g.Root, "localstack", "functions.sh")
	out, err := exec.CommandContext(ctx, script, function).Output()
	if err != nil {
		return 0, fmt.Errorf("find processes of %s: %w", function, err)
	}
	for _, line := range strings.Fields(string(out)) {
		pid, err := strconv.Atoi(line)
		if err != nil {
			return killed, fmt.Errorf("find processes of %s: %w", function, err)
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed, nil
}
