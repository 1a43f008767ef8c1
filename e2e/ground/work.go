// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/searchable"
	"github.com/lullhq/lull/searchable/sigv4"
)

// JobRule enables or disables the rule that starts a work of the function job.
func (s *Stack) JobRule(t testing.TB, w config.Work, on bool) {
	t.Helper()
	Must(t, s.rule(context.WithoutCancel(t.Context()), s.Names.JobRule(string(w)), on))
}

// DoWork makes the function job do a work, as the work's rule does, until the job with this id is
// done.
func (s *Stack) DoWork(t testing.TB, w config.Work, id string) job.State {
	t.Helper()
	start := func() {
		t.Helper()
		path := "/2015-03-31/functions/" + s.Names.Job() + "/invocations?Qualifier=current"
		header := http.Header{"Content-Type": {"application/json"}, "X-Amz-Invocation-Type": {"Event"}}
		Must(t, s.json(t.Context(), "lambda", http.MethodPost, path, map[string]string{"work": string(w)}, nil, header))
	}
	start()
	var state job.State
	Until(t, id+" is done", func() (bool, string) {
		var all []job.State
		s.JSON(t, &all, "jobs")
		i := slices.IndexFunc(all, func(j job.State) bool { return j.ID == id })
		if i < 0 {
			return false, "no such job"
		}
		if state = all[i]; state.Phase == job.Stopped { // at the end of a portion
			start()
		}
		return state.Phase == job.Done, fmt.Sprintf("%+v", state)
	})
	return state
}

// Questions returns a client of the stack's URL, with these credentials. The emulator serves the
// URL below its own address.
func (s *Stack) Questions(t testing.TB, who Who) *searchable.Client {
	t.Helper()
	answer, err := s.Query(t.Context(), "cloudformation", "2010-05-15", "DescribeStacks",
		url.Values{"StackName": {s.Config.Stack}})
	Must(t, err)
	var described struct {
		Outputs []struct{ OutputKey, OutputValue string } `xml:"DescribeStacksResult>Stacks>member>Outputs>member"`
	}
	Must(t, xml.Unmarshal(answer, &described))
	address := ""
	for _, o := range described.Outputs {
		if o.OutputKey == "LullSearchableUrl" {
			address = o.OutputValue
		}
	}
	id, _, ok := strings.Cut(strings.TrimPrefix(address, "https://"), ".")
	if !ok {
		t.Fatalf("the output LullSearchableUrl is %q", address)
	}
	value := func(i int) string { _, v, _ := strings.Cut(who[i], "="); return v }
	signed := aws.Config{
		Region: s.Account.Region, Credentials: credentials.NewStaticCredentialsProvider(value(0), value(1), value(2)),
	}
	return &searchable.Client{
		URL: strings.TrimRight(s.endpoint("lambda"), "/") + "/_aws/lambda-url/" + id, Sign: sigv4.Sign(signed),
	}
}
