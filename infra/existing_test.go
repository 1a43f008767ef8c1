// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/lambda"
)

// If the settings name an existing table and queue, the stack uses them and does not create its
// own. Every right, mapping, variable and alarm refers to the existing table and queue.
func TestWhatExistsAlreadyIsUsedAndNotMade(t *testing.T) {
	t.Parallel()
	s := stackOf(t, existingStack)
	if n := len(s.all("AWS::DynamoDB::GlobalTable")); n != 0 {
		t.Errorf("the stack makes %d tables, want none", n)
	}
	if n := len(s.all("AWS::SQS::Queue")); n != 2 {
		t.Errorf("the stack makes %d queues, want bulk and dead", n)
	}
	text, err := json.Marshal(s.Resources)
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{"plain-shards", `plain-search-live"`} {
		if strings.Contains(string(text), own) {
			t.Errorf("something still names %s", own)
		}
	}
	f := s.named(t, "AWS::Lambda::Function", "FunctionName", "plain-search-receive")
	env := fields(fields(f.Properties["Environment"])["Variables"])
	if got := s.text(env[lambda.EnvTable]); got != "content-rows" {
		t.Errorf("receive's table is %s, want content-rows", got)
	}
	for what, want := range map[string]string{
		lambda.EnvLiveQueue: "/published", lambda.EnvBulkQueue: "{queue plain-search-bulk}",
	} {
		if got := s.text(env[what]); !strings.HasSuffix(got, want) {
			t.Errorf("receive's %s is %s, want it to end in %s", what, got, want)
		}
	}
	mapped := false
	for _, m := range s.all("AWS::Lambda::EventSourceMapping") {
		mapped = mapped || strings.HasSuffix(s.text(m.Properties["EventSourceArn"]), ":published")
	}
	if !mapped {
		t.Error("no mapping reads the queue")
	}
	for _, want := range []string{`"QueueName","Value":"published"`, `:table/content-rows`, `"TableName","Value":"content-rows"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("nothing holds %s", want)
		}
	}
}

// A queue has only one policy. A policy of this stack would replace the policy that the queue's own
// stack made.
func TestNoUpstreamOfAQueueThatExistsAlready(t *testing.T) {
	stackOf(t, existingStack)
	p := existingProps()
	p.Upstreams = []Upstream{
		{Sender: awsiam.NewAccountPrincipal(jsii.String("444455556666")), Lane: Bulk},
		{Sender: awsiam.NewAccountPrincipal(jsii.String("444455556666"))},
	}
	faults := Faults(p.Validate())
	if len(faults) != 1 || faults[0].Setting != "Upstreams[1]" || !strings.Contains(faults[0].Fix, "its own stack") {
		t.Errorf("got %v, want one fault, of the second upstream", faults)
	}
}
