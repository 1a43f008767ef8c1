package ground

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
)

// DeployPlain deploys a stack to an emulator that enforces IAM: the template as it is synthesised,
// without the policies that demand TLS. It is also without alarms and dashboard, of which the
// emulator does not know all kinds. The account is prepared without `cdk bootstrap`: where its
// roles are missing, the command line acts as its caller, and the emulator denies those roles what
// they may do.
func (g *Ground) DeployPlain(ctx context.Context, settings Settings) (*Stack, error) {
	s, env, err := g.prepare(ctx, settings)
	if err != nil {
		return nil, err
	}
	out := filepath.Join(g.work, settings.Stack+".out")
	synth := exec.CommandContext(ctx, filepath.Join(g.work, "infra"))
	synth.Env, synth.Dir = append(append(os.Environ(), env...), "LULL_PLAIN_HTTP=true", "CDK_OUTDIR="+out), g.work
	if text, err := synth.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("synthesise: %w\n%s", err, text)
	}
	if err := leaveOut(filepath.Join(out, settings.Stack+".template.json"), "AWS::CloudWatch::"); err != nil {
		return nil, err
	}
	_, err = sdk.NewFromConfig(g.Account, func(o *sdk.Options) { o.UsePathStyle = true }).CreateBucket(ctx,
		&sdk.CreateBucketInput{Bucket: aws.String("cdk-hnb659fds-assets-" + AccountID + "-" + g.Account.Region)})
	version := map[string]any{"Name": "/cdk-bootstrap/hnb659fds/version", "Value": "30", "Type": "String"}
	err = errors.Join(err, g.target(ctx, "ssm", "AmazonSSM.PutParameter", version, nil))
	if err != nil {
		return nil, err
	}
	return s, s.deploy(ctx, nil, "--app", out)
}

// leaveOut removes the resources of a kind from a template. Nothing may refer to them.
func leaveOut(path, kind string) error {
	var template map[string]any
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &template)
	}
	if err != nil {
		return fmt.Errorf("read the template: %w", err)
	}
	resources, _ := template["Resources"].(map[string]any)
	maps.DeleteFunc(resources, func(_ string, r any) bool {
		resource, _ := r.(map[string]any)
		is, _ := resource["Type"].(string)
		return strings.HasPrefix(is, kind)
	})
	text, err = json.Marshal(template)
	return errors.Join(err, os.WriteFile(path, text, 0o644))
}
