// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/shard"
)

// DeployPlain deploys a stack to an emulator that enforces IAM. The template has no policies that
// demand TLS. It also has no alarms and no dashboard, because the emulator does not support all
// their types. The account is prepared without `cdk bootstrap`, because the emulator denies
// requests that the policies of the bootstrap roles allow. Without these roles, the CDK command
// uses the credentials of its caller.
func (g *Ground) DeployPlain(ctx context.Context, settings Settings) (*Stack, error) {
	return g.deployPlain(ctx, settings, g.now)
}

// DeployEarlier is DeployPlain with the build that run.sh made of an earlier commit.
func (g *Ground) DeployEarlier(ctx context.Context, settings Settings) (*Stack, error) {
	return g.deployPlain(ctx, settings, earlierBuild())
}

func earlierBuild() build {
	folder := os.Getenv(envBefore)
	return build{filepath.Join(folder, "infra"), filepath.Join(folder, "dist")}
}

func (g *Ground) deployPlain(ctx context.Context, settings Settings, b build) (*Stack, error) {
	s, err := g.prepare(ctx, settings)
	if err != nil {
		return nil, err
	}
	version := map[string]any{
		"Name": "/cdk-bootstrap/hnb659fds/version", "Value": "30", "Type": "String", "Overwrite": true,
	}
	err = errors.Join(g.Bucket(ctx, "cdk-hnb659fds-assets-"+g.AccountID+"-"+g.Account.Region),
		g.target(ctx, "ssm", "AmazonSSM.PutParameter", version, nil))
	if err != nil {
		return nil, err
	}
	if err := s.plain(ctx, b); err != nil {
		return nil, err
	}
	// The emulator's CloudFormation does not set the table's TTL, and `lull doctor` would report
	// that.
	_, err = dynamodb.NewFromConfig(g.Account).UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String(s.Names.Table()), TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(string(shard.AttrExpiresAt)), Enabled: aws.Bool(true),
		},
	})
	return s, err
}

// Upgrade deploys the current build over the deployed stack.
func (s *Stack) Upgrade(t testing.TB) { t.Helper(); Must(t, s.plain(t.Context(), s.now)) }

// RollBack deploys the earlier build over the deployed stack.
func (s *Stack) RollBack(t testing.TB) { t.Helper(); Must(t, s.plain(t.Context(), earlierBuild())) }

// plain synthesises the template of a build, and deploys it without the resources that the emulator
// does not support.
func (s *Stack) plain(ctx context.Context, b build) error {
	out := filepath.Join(s.Work, s.Config.Stack+".out")
	env := slices.Concat(s.options, []string{"LULL_DIST=" + b.dist, "LULL_PLAIN_HTTP=true", "CDK_OUTDIR=" + out})
	if err := Run(ctx, s.Work, env, b.infra); err != nil {
		return fmt.Errorf("synthesise: %w", err)
	}
	if err := leaveOut(filepath.Join(out, s.Config.Stack+".template.json"), "AWS::CloudWatch::"); err != nil {
		return fmt.Errorf("change the template: %w", err)
	}
	return s.deploy(ctx, nil, "--app", out)
}

// Watches fails the test unless the alarm of a kind watches a metric, which is given as "NAMESPACE
// NAME". It reads the definitions from which package infra makes the alarms.
func (s *Stack) Watches(t testing.TB, kind, metric string) {
	t.Helper()
	all := alarms.Sink{Config: s.Config, Name: Sink}.Alarms()
	if !slices.ContainsFunc(all, func(a alarms.Alarm) bool {
		return a.Kind == kind && slices.ContainsFunc(slices.Concat(a.Of, a.Minus), func(m alarms.Metric) bool {
			return m.Namespace+" "+m.Name == metric
		})
	}) {
		t.Errorf("the alarm %s does not watch %s", kind, metric)
	}
}

// leaveOut removes the resources of a kind from a template. Nothing may refer to them.
func leaveOut(path, kind string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for name, resource := range gjson.GetBytes(text, "Resources").ForEach {
		if !strings.HasPrefix(resource.Get("Type").Str, kind) {
			continue
		}
		if text, err = sjson.DeleteBytes(text, "Resources."+name.Str); err != nil {
			return err
		}
	}
	return os.WriteFile(path, text, 0o644)
}
