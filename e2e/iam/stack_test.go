// SPDX-License-Identifier: Apache-2.0

//go:build e2eiam

package iam

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// waitForDecision waits until the decision log has a step after this time, with this text in its
// detail.
func waitForDecision(t testing.TB, s *ground.Stack, since time.Time, step journal.Step, detail string) {
	t.Helper()
	ground.Until(t, fmt.Sprintf("the log has the step %s with %q", step, detail), func() (bool, string) {
		counts := s.Counts(t)
		return slices.ContainsFunc(s.Decisions, func(d ground.Decision) bool {
			return d.Step == step && d.At.After(since) && strings.Contains(d.Detail, detail)
		}), fmt.Sprint(counts)
	})
}

// runPrune runs prune now, even if it ran shortly before, and returns the error of the run. The
// rule that starts prune must be off.
func runPrune(t testing.TB, s *ground.Stack) error {
	t.Helper()
	s.Forget(t, shard.RunRow("prune-"+ground.Sink))
	s.Forget(t, shard.RunRow("rows"))
	var answer struct{ ErrorType, ErrorMessage string }
	s.Lambda(t, names.Prune, http.MethodPost, "/invocations?Qualifier="+names.Alias, map[string]any{}, &answer)
	if answer.ErrorMessage != "" {
		return fmt.Errorf("prune: %s: %s", answer.ErrorType, answer.ErrorMessage)
	}
	return nil
}

// setDeadVisibility sets how long a dead letter that dlq could not park stays invisible. In the
// deployed stack, it is three minutes.
func setDeadVisibility(t testing.TB, s *ground.Stack, d time.Duration) {
	t.Helper()
	_, err := s.SQS.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &s.Dead, Attributes: map[string]string{"VisibilityTimeout": fmt.Sprint(int(d / time.Second))},
	})
	ground.Must(t, err)
}

// platformErrors returns how many invocations of a function the platform counted as failed.
func platformErrors(t testing.TB, s *ground.Stack, f names.Function) int {
	t.Helper()
	answer, err := s.Query(t.Context(), "monitoring", "2010-08-01", "GetMetricStatistics", url.Values{
		"Namespace": {"AWS/Lambda"}, "MetricName": {"Errors"}, "Period": {"86400"},
		"Statistics.member.1":       {"Sum"},
		"Dimensions.member.1.Name":  {"FunctionName"},
		"Dimensions.member.1.Value": {s.Names.Function(ground.Sink, f)},
		"StartTime":                 {time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)},
		"EndTime":                   {time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
	})
	ground.Must(t, err)
	sum := 0
	for _, part := range strings.Split(string(answer), "<Sum>")[1:] {
		n, err := strconv.ParseFloat(part[:strings.Index(part, "<")], 64)
		ground.Must(t, err)
		sum += int(n)
	}
	return sum
}
