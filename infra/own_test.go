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

// A stack of one's own needs nothing but this package: it publishes to a topic, lets a role send in
// bulk, and uses lull's parts. (Not parallel: CDK's own objects are made by one goroutine at a
// time.)
func TestAStackOfOnesOwnHoldsLull(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []infra.Function{infra.Receive, infra.Index, infra.Prune, infra.DLQ} {
		if err := infra.WriteProgram(filepath.Join(dir, "dist", string(f), "bootstrap"), string(f)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "lull.yaml")
	if err := os.WriteFile(path,
		[]byte("stack: news\nsinks: {search: {kind: opensearch, index: 'lull-{collection}', url: 'https://search.example.org'}}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := infra.LoadSettings(path)
	if err != nil {
		t.Fatal(err)
	}
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(filepath.Join(dir, "out"))})
	stack := awscdk.NewStack(app, jsii.String("Newsroom"), nil)
	props := &infra.Props{
		Config:   settings,
		AssetDir: filepath.Join(dir, "dist"),
		Upstreams: []infra.Upstream{
			{Topic: awssns.NewTopic(stack, jsii.String("Published"), nil)},
			{Sender: awsiam.NewRole(stack, jsii.String("Importer"),
				&awsiam.RoleProps{AssumedBy: awsiam.NewAccountRootPrincipal()}), Lane: infra.Bulk},
		},
	}
	if err := props.Validate(); err != nil {
		t.Fatal(err)
	}
	lull := infra.NewLull(stack, "Lull", props)
	awscdk.NewCfnOutput(stack, jsii.String("Own"),
		&awscdk.CfnOutputProps{Value: lull.Sinks["search"].Functions[infra.Index].Alias.FunctionArn()})
	app.Synth(nil)
	text, err := os.ReadFile(filepath.Join(dir, "out", "Newsroom.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"news-search-live"`, `"RawMessageDelivery": true`, `"Own"`,
		`"LullSearchLiveQueue"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the template has no %s", want)
		}
	}
}

// A collection with several sinks gets what a topic or a bus sends in the queue of each. This test
// is not parallel, because CDK's runtime takes one call at a time.
func TestATopicAndABusReachEverySinkOfACollection(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []infra.Function{infra.Receive, infra.Index, infra.Prune, infra.DLQ} {
		if err := infra.WriteProgram(filepath.Join(dir, "dist", string(f), "bootstrap"), string(f)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "lull.yaml")
	if err := os.WriteFile(path, []byte(`
stack: news
collections: {content: {sinks: [search, vectors]}}
defaultSink: search
sinks:
  search: {kind: opensearch, index: 'lull-{collection}', url: 'https://search.example.org'}
  vectors: {kind: opensearch, index: 'lull-{collection}', url: 'https://vectors.example.org'}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := infra.LoadSettings(path)
	if err != nil {
		t.Fatal(err)
	}
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(filepath.Join(dir, "out"))})
	stack := awscdk.NewStack(app, jsii.String("Newsroom"), nil)
	topic := awssns.NewTopic(stack, jsii.String("Published"), nil)
	infra.NewLull(stack, "Lull", &infra.Props{
		Config:   settings,
		AssetDir: filepath.Join(dir, "dist"),
		Upstreams: []infra.Upstream{
			{Topic: topic},
			{Topic: topic, Sink: "vectors"}, // the same once more, as somebody may write it
			{
				Bus:     awsevents.EventBus_FromEventBusName(stack, jsii.String("Bus"), jsii.String("content")),
				Pattern: &awsevents.EventPattern{Source: jsii.Strings("cms")},
			},
		},
	})
	app.Synth(nil)
	text, err := os.ReadFile(filepath.Join(dir, "out", "Newsroom.template.json"))
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Resources map[string]struct {
			Type       string
			Properties map[string]any
		}
	}
	if err := json.Unmarshal(text, &made); err != nil {
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
