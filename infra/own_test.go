package infra_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
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

func TestSettingsThatCannotBeReadAreAnError(t *testing.T) {
	t.Parallel()
	if _, err := infra.LoadSettings(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("got no error")
	}
}
