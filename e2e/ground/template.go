package ground

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Create deploys a stack without the CDK command line, for an emulator that does not take it: the
// template as it is synthesised, except for the policies that demand TLS and for alarms and
// dashboard, of which it does not know all kinds; the assets as they are staged; and
// CloudFormation's own call.
func (g *Ground) Create(ctx context.Context, settings Settings) (*Stack, error) {
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
	template, err := g.upload(ctx, out, settings.Stack)
	if err != nil {
		return nil, err
	}
	version := map[string]any{
		"Name": "/cdk-bootstrap/hnb659fds/version", "Value": "30", "Type": "String",
		"Overwrite": true,
	}
	if err := g.target(ctx, "ssm", "AmazonSSM.PutParameter", version, nil); err != nil {
		return nil, err
	}
	_, err = g.query(ctx, "cloudformation", "2010-05-15", "CreateStack", url.Values{
		"StackName": {settings.Stack}, "TemplateURL": {template}, "Capabilities.member.1": {"CAPABILITY_NAMED_IAM"},
	})
	if err == nil {
		err = g.created(ctx, settings.Stack)
	}
	if err != nil {
		return nil, err
	}
	return s, s.findQueues(ctx)
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

// created waits until a stack is complete.
func (g *Ground) created(ctx context.Context, stack string) error {
	form := url.Values{"StackName": {stack}}
	status, _ := wait(ctx, Patience, func() (bool, string) {
		answer, err := g.query(ctx, "cloudformation", "2010-05-15", "DescribeStacks", form)
		if err != nil {
			return true, err.Error()
		}
		status := element(answer, "StackStatus")
		return status != "CREATE_IN_PROGRESS", status
	})
	if status == "CREATE_COMPLETE" {
		return nil
	}
	events, err := g.query(ctx, "cloudformation", "2010-05-15", "DescribeStackEvents", form)
	reasons := strings.Join(stackFailure.FindAllString(string(events), -1), "\n")
	return errors.Join(fmt.Errorf("stack %s: %s\n%s", stack, status, reasons), err)
}

var stackFailure = regexp.MustCompile(`<ResourceStatusReason>[^<]+`)
