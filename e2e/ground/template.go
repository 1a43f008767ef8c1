package ground

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/names"
	"github.com/lullhq/lull/internal/shard"
)

// DeployPlain deploys a stack to an emulator that enforces IAM: the template as it is synthesised,
// without the policies that demand TLS. It is also without alarms and dashboard, of which the
// emulator does not know all kinds. The account is prepared without `cdk bootstrap`: where its
// roles are missing, the command line acts as its caller, and the emulator denies those roles what
// they may do.
func (g *Ground) DeployPlain(ctx context.Context, settings Settings) (*Stack, error) {
	return g.deployPlain(ctx, settings, g.now)
}

// DeployEarlier is DeployPlain with the build that run.sh made of an earlier commit.
func (g *Ground) DeployEarlier(ctx context.Context, settings Settings) (*Stack, error) {
	return g.deployPlain(ctx, settings, earlier())
}

func earlier() build {
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
	err = errors.Join(g.bucket(ctx, "cdk-hnb659fds-assets-"+AccountID+"-"+g.Account.Region),
		g.target(ctx, "ssm", "AmazonSSM.PutParameter", version, nil))
	if err != nil {
		return nil, err
	}
	if err := s.plain(ctx, b); err != nil {
		return nil, err
	}
	// The emulator's CloudFormation leaves it out, and doctor would say so.
	_, err = dynamodb.NewFromConfig(g.Account).UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: aws.String(s.Names.Table()), TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(string(shard.AttrExpiresAt)), Enabled: aws.Bool(true),
		},
	})
	return s, err
}

// Upgrade deploys today's build over whatever is deployed.
func (s *Stack) Upgrade(t testing.TB) { t.Helper(); must(t, s.plain(t.Context(), s.now)) }

// RollBack deploys the earlier build over whatever is deployed.
func (s *Stack) RollBack(t testing.TB) { t.Helper(); must(t, s.plain(t.Context(), earlier())) }

// plain synthesises a build's template, and deploys it without what the emulator does not know.
func (s *Stack) plain(ctx context.Context, b build) (err error) {
	out := filepath.Join(s.work, s.Config.Stack+".out")
	env := slices.Concat(s.options, []string{"LULL_DIST=" + b.dist, "LULL_PLAIN_HTTP=true", "CDK_OUTDIR=" + out})
	if err := run(ctx, s.work, env, b.infra); err != nil {
		return fmt.Errorf("synthesise: %w", err)
	}
	template := filepath.Join(out, s.Config.Stack+".template.json")
	if s.alarms, err = watched(template, s.Names.Alarm(Sink, "")); err != nil {
		return err
	}
	if err := leaveOut(template, "AWS::CloudWatch::"); err != nil {
		return err
	}
	return s.deploy(ctx, nil, "--app", out)
}

// watched reads from a template which metrics its alarms watch: by what follows a prefix of their
// names, each metric with its namespace before it.
func watched(path, prefix string) (map[string][]string, error) {
	type metric struct{ Namespace, MetricName string }
	var template struct {
		Resources map[string]struct {
			Type       string
			Properties struct {
				AlarmName string
				metric
				Metrics []struct{ MetricStat struct{ Metric metric } }
			}
		}
	}
	if err := readTemplate(path, &template); err != nil {
		return nil, err
	}
	all := make(map[string][]string)
	for _, r := range template.Resources {
		kind, ours := strings.CutPrefix(r.Properties.AlarmName, prefix)
		if r.Type != "AWS::CloudWatch::Alarm" || !ours {
			continue
		}
		metrics := []metric{r.Properties.metric}
		for _, m := range r.Properties.Metrics {
			metrics = append(metrics, m.MetricStat.Metric)
		}
		for _, m := range metrics {
			if m.MetricName != "" && !slices.Contains(all[kind], m.Namespace+" "+m.MetricName) {
				all[kind] = append(all[kind], m.Namespace+" "+m.MetricName)
			}
		}
	}
	return all, nil
}

// Watches fails the test unless the alarm of a kind watches the metric, which is "NAMESPACE NAME".
func (s *Stack) Watches(t testing.TB, kind, metric string) {
	t.Helper()
	if !slices.Contains(s.alarms[kind], metric) {
		t.Errorf("the alarm %s watches %q, want %s", kind, s.alarms[kind], metric)
	}
}

// Errors is how many invocations of a function the platform counted as failed.
func (s *Stack) Errors(t testing.TB, f names.Function) int {
	t.Helper()
	answer, err := s.query(t.Context(), "monitoring", "2010-08-01", "GetMetricStatistics", url.Values{
		"Namespace": {"AWS/Lambda"}, "MetricName": {"Errors"}, "Period": {"86400"},
		"Statistics.member.1":       {"Sum"},
		"Dimensions.member.1.Name":  {"FunctionName"},
		"Dimensions.member.1.Value": {s.Names.Function(Sink, f)},
		"StartTime":                 {time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)},
		"EndTime":                   {time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
	})
	must(t, err)
	sum := 0
	for _, part := range strings.Split(string(answer), "<Sum>")[1:] {
		n, err := strconv.ParseFloat(part[:strings.Index(part, "<")], 64)
		must(t, err)
		sum += int(n)
	}
	return sum
}

// leaveOut removes the resources of a kind from a template. Nothing may refer to them.
func leaveOut(path, kind string) error {
	var template map[string]any
	if err := readTemplate(path, &template); err != nil {
		return err
	}
	resources, _ := template["Resources"].(map[string]any)
	maps.DeleteFunc(resources, func(_ string, r any) bool {
		resource, _ := r.(map[string]any)
		is, _ := resource["Type"].(string)
		return strings.HasPrefix(is, kind)
	})
	text, err := json.Marshal(template)
	return errors.Join(err, os.WriteFile(path, text, 0o644))
}

func readTemplate(path string, into any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read the template: %w", err)
	}
	return nil
}
