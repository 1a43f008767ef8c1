// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

const (
	// attemptTimeout is the time-out of one request. CloudWatch searches for some seconds, and may
	// then answer with a part of the lines.
	attemptTimeout = 15 * time.Second
	// maxPages is the largest number of requests for one log group. A page has up to 10,000 lines,
	// or fewer if CloudWatch searched only a part.
	maxPages = 40
	// maxDecisions is how many lines History returns at most, from all groups together.
	maxDecisions = 200
)

// Logs reads the log groups of a stack's functions. The type Logs is safe for concurrent use.
type Logs struct {
	api *sdk.Client
	clk clock.Clock
}

// New returns the logs of an account. New switches off the retries of the SDK.
func New(cfg aws.Config) *Logs {
	return &Logs{api: sdk.NewFromConfig(client.Bounded(cfg, attemptTimeout)), clk: clock.System{}}
}

// History returns the log lines about a document in the given groups since a time, oldest first.
// History returns the newest 200 lines at most. If a search could not read all lines, an additional
// last line with the step "logs" says so.
func (l *Logs) History(ctx context.Context, groups []string, doc shard.DocID, since time.Time) ([]operate.Decision,
	error,
) {
	var all []operate.Decision
	unfinished := false
	for _, group := range groups {
		found, whole, err := l.search(ctx, group, doc, since)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		unfinished = unfinished || !whole
	}
	slices.SortStableFunc(all, func(a, b operate.Decision) int { return a.At.Compare(b.At) })
	all = all[max(0, len(all)-maxDecisions):]
	if unfinished {
		all = append(all, operate.Decision{
			At: l.clk.Now(), Step: "logs",
			Text: "not all log lines were searched: ask for a shorter time",
		})
	}
	return all, nil
}

// search reads the lines of one log group. whole says whether it read all of them.
func (l *Logs) search(ctx context.Context, group string, doc shard.DocID, since time.Time) (found []operate.Decision,
	whole bool, err error,
) {
	in := &sdk.FilterLogEventsInput{
		LogGroupName: &group, FilterPattern: aws.String(pattern(doc)),
		StartTime: aws.Int64(since.UnixMilli()),
	}
	for range maxPages {
		out, err := backoff.Get(ctx, l.clk, func() (*sdk.FilterLogEventsOutput, error) {
			out, err := l.api.FilterLogEvents(ctx, in)
			return out, failure(group, err)
		})
		if err != nil {
			return nil, false, err
		}
		for _, e := range out.Events {
			if d, ok := decision(aws.ToString(e.Message), doc, time.UnixMilli(aws.ToInt64(e.Timestamp))); ok {
				found = append(found, d)
			}
		}
		found = found[max(0, len(found)-maxDecisions):]
		if aws.ToString(out.NextToken) == "" {
			return found, true, nil
		}
		in.NextToken = out.NextToken
	}
	return found, false, nil
}

// pattern returns a filter pattern that selects lines by their field doc. A character that may have
// a meaning in a pattern becomes a wildcard. So the pattern may match lines of other documents,
// which decision drops.
func pattern(doc shard.DocID) string {
	var b strings.Builder
	for _, r := range string(doc) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("#-_./:@", r):
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "*"):
			b.WriteByte('*')
		}
	}
	return `{ $.doc = "` + b.String() + `" }`
}

// failure explains an error of CloudWatch Logs.
func failure(group string, err error) error {
	return client.Explain("log group "+group, err,
		client.Final{
			Says:  " does not exist in this account and region: deploy the stack, or correct its name",
			Codes: []string{"ResourceNotFound"},
		},
		client.Final{Says: " refuses the search", Codes: []string{"InvalidParameter"}},
		client.Final{
			Says: ": the credentials do not permit this: assume the reader's role, or grant logs:FilterLogEvents",
		})
}
