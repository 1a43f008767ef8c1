// SPDX-License-Identifier: Apache-2.0

package infra_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/infra"
)

// newsroom makes a stack that belongs to a user, and the props for Lull with these settings. The
// returned function synthesises the stack and returns its template.
func newsroom(t *testing.T, text string) (awscdk.Stack, *infra.Props, func() []byte) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range []infra.Function{infra.Receive, infra.Index, infra.Prune, infra.DLQ} {
		if err := infra.WriteProgram(filepath.Join(dir, "dist", string(f), "bootstrap"), string(f)); err != nil {
			t.Fatal(err)
		}
	}
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(filepath.Join(dir, "out"))})
	props := &infra.Props{Config: settings(t, text), AssetDir: filepath.Join(dir, "dist")}
	return awscdk.NewStack(app, jsii.String("Newsroom"), nil), props, func() []byte {
		app.Synth(nil)
		template, err := os.ReadFile(filepath.Join(dir, "out", "Newsroom.template.json"))
		if err != nil {
			t.Fatal(err)
		}
		return template
	}
}

// settings reads the text as a settings file.
func settings(t *testing.T, text string) *infra.Settings {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lull.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := infra.LoadSettings(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A stack outside of lull's module can contain lull, and needs only package infra. The stack of
// this test publishes to a topic, lets a role send in bulk, and uses the parts of lull. The test is
// not parallel, because only one goroutine at a time may create objects of CDK.
func TestAStackOfOnesOwnHoldsLull(t *testing.T) {
	stack, props, synth := newsroom(t,
		"stack: news\nsinks: {search: {kind: opensearch, index: 'lull-{collection}', url: 'https://search.example.org'}}\n")
	props.Upstreams = []infra.Upstream{
		{Topic: awssns.NewTopic(stack, jsii.String("Published"), nil)},
		{Sender: awsiam.NewRole(stack, jsii.String("Importer"),
			&awsiam.RoleProps{AssumedBy: awsiam.NewAccountRootPrincipal()}), Lane: infra.Bulk},
	}
	if err := props.Validate(); err != nil {
		t.Fatal(err)
	}
	lull := infra.NewLull(stack, "Lull", props)
	awscdk.NewCfnOutput(stack, jsii.String("Own"),
		&awscdk.CfnOutputProps{Value: lull.Sinks["search"].Functions[infra.Index].Alias.FunctionArn()})
	text := synth()
	for _, want := range []string{
		`"news-search-live"`, `"RawMessageDelivery": true`, `"Own"`,
		`"LullSearchLiveQueue"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the template has no %s", want)
		}
	}
}

// If a collection has several sinks, a topic or a bus sends to the queue of each. This test is not
// parallel, because CDK's runtime takes one call at a time.
func TestATopicAndABusReachEverySinkOfACollection(t *testing.T) {
	stack, props, synth := newsroom(t, `
stack: news
collections: {content: {sinks: [search, vectors]}}
defaultSink: search
sinks:
  search: {kind: opensearch, index: 'lull-{collection}', url: 'https://search.example.org'}
  vectors: {kind: opensearch, index: 'lull-{collection}', url: 'https://vectors.example.org'}
`)
	topic := awssns.NewTopic(stack, jsii.String("Published"), nil)
	props.Upstreams = []infra.Upstream{
		{Topic: topic},
		{Topic: topic, Sink: "vectors"}, // the same topic again, because a user may list a topic twice
		{
			Bus:     awsevents.EventBus_FromEventBusName(stack, jsii.String("Bus"), jsii.String("content")),
			Pattern: &awsevents.EventPattern{Source: jsii.Strings("cms")},
		},
	}
	infra.NewLull(stack, "Lull", props)
	var made struct {
		Resources map[string]struct {
			Type       string
			Properties map[string]any
		}
	}
	if err := json.Unmarshal(synth(), &made); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for id, queue := range made.Resources {
		for _, r := range made.Resources {
			properties, _ := json.Marshal(r.Properties) //nolint:errchkjson // it was JSON
			if queue.Type == "AWS::SQS::Queue" && (r.Type == "AWS::SNS::Subscription" && strings.Contains(
				string(properties), `"Endpoint":{"Fn::GetAtt":["`+id) ||
				r.Type == "AWS::Events::Rule" && strings.Contains(string(properties), `"Arn":{"Fn::GetAtt":["`+id+`","Arn"]},"DeadLetter`)) {
				got[fmt.Sprint(r.Type, " ", queue.Properties["QueueName"])]++
			}
		}
	}
	want := map[string]int{
		"AWS::SNS::Subscription news-search-live": 1, "AWS::SNS::Subscription news-vectors-live": 1,
		"AWS::Events::Rule news-search-live": 1, "AWS::Events::Rule news-vectors-live": 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSettingsThatCannotBeReadAreAnError(t *testing.T) {
	t.Parallel()
	if _, err := infra.LoadSettings(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("got no error")
	}
}
