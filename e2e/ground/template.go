package ground

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
)

// Create deploys a stack without the CDK command line, for an emulator that does not take it: the template as it is synthesised, except
// for the policies that demand TLS and for alarms and dashboard, of which it does not know all kinds; the assets as they are staged; and
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
	version := map[string]any{"Name": "/cdk-bootstrap/hnb659fds/version", "Value": "30", "Type": "String", "Overwrite": true}
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
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the template: %w", err)
	}
	var template, resources map[string]json.RawMessage
	if err = json.Unmarshal(text, &template); err == nil {
		err = json.Unmarshal(template["Resources"], &resources)
	}
	if err != nil {
		return fmt.Errorf("read the template: %w", err)
	}
	for name, r := range resources {
		var resource struct{ Type string }
		if err := json.Unmarshal(r, &resource); err != nil {
			return fmt.Errorf("read resource %s of the template: %w", name, err)
		}
		if strings.HasPrefix(resource.Type, kind) {
			delete(resources, name)
		}
	}
	if template["Resources"], err = json.Marshal(resources); err == nil {
		text, err = json.Marshal(template)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the template: %w", err)
	}
	return nil
}

// upload puts a stack's assets where its template expects them, and returns the address of the template, which is one of them.
func (g *Ground) upload(ctx context.Context, out, stack string) (template string, err error) {
	text, err := os.ReadFile(filepath.Join(out, stack+".assets.json"))
	if err != nil {
		return "", fmt.Errorf("read the list of assets: %w", err)
	}
	var list struct {
		Files map[string]struct {
			Source       struct{ Path, Packaging string }
			Destinations map[string]struct{ BucketName, ObjectKey string }
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return "", fmt.Errorf("read the list of assets: %w", err)
	}
	client := sdk.NewFromConfig(g.Account, func(o *sdk.Options) { o.UsePathStyle = true })
	for _, file := range list.Files {
		body, err := os.ReadFile(filepath.Join(out, file.Source.Path))
		if file.Source.Packaging == "zip" {
			body, err = pack(filepath.Join(out, file.Source.Path))
		}
		if err != nil {
			return "", fmt.Errorf("read asset %s: %w", file.Source.Path, err)
		}
		for _, to := range file.Destinations {
			_, made := client.CreateBucket(ctx, &sdk.CreateBucketInput{Bucket: &to.BucketName}) // for the first of them
			_, err := client.PutObject(ctx, &sdk.PutObjectInput{Bucket: &to.BucketName, Key: &to.ObjectKey, Body: bytes.NewReader(body)})
			if err != nil {
				return "", fmt.Errorf("upload asset %s: %w", file.Source.Path, errors.Join(err, made))
			}
			if strings.HasSuffix(file.Source.Path, ".template.json") {
				template = aws.ToString(g.Account.BaseEndpoint) + "/" + to.BucketName + "/" + to.ObjectKey
			}
		}
	}
	return template, nil
}

// pack zips a folder.
func pack(dir string) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		header, err := zip.FileInfoHeader(info)
		if err != nil {
			return err
		}
		if header.Name, err = filepath.Rel(dir, path); err != nil {
			return err
		}
		header.Method = zip.Deflate
		to, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil {
			_, err = to.Write(content)
		}
		return err
	})
	err = errors.Join(err, w.Close()) // the directory at its end comes with Close
	return out.Bytes(), err
}

var stackStatus = regexp.MustCompile(`<StackStatus>([^<]+)</StackStatus>`)

// created waits until a stack is complete.
func (g *Ground) created(ctx context.Context, stack string) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		answer, err := g.query(ctx, "cloudformation", "2010-05-15", "DescribeStacks", url.Values{"StackName": {stack}})
		if err != nil {
			return err
		}
		var status string
		if m := stackStatus.FindSubmatch(answer); m != nil {
			status = string(m[1])
		}
		switch {
		case status == "CREATE_COMPLETE":
			return nil
		case strings.Contains(status, "FAILED"), strings.Contains(status, "ROLLBACK"):
			events, err := g.query(ctx, "cloudformation", "2010-05-15", "DescribeStackEvents", url.Values{"StackName": {stack}})
			return errors.Join(fmt.Errorf("stack %s: %s\n%s", stack, status, failures(events)), err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("stack %s is still %s: %w", stack, status, ctx.Err())
		}
	}
}

var stackFailure = regexp.MustCompile(`<ResourceStatusReason>([^<]+)</ResourceStatusReason>`)

// failures are the reasons in a stack's events.
func failures(events []byte) string {
	var all []string
	for _, m := range stackFailure.FindAllSubmatch(events, -1) {
		all = append(all, string(m[1]))
	}
	return strings.Join(all, "\n")
}

// As is the account for a role of it, as somebody who may assume the role.
func (g *Ground) As(ctx context.Context, role string) (aws.Config, error) {
	answer, err := g.query(ctx, "sts", "2011-06-15", "AssumeRole", url.Values{
		"RoleArn": {"arn:aws:iam::" + AccountID + ":role/" + role}, "RoleSessionName": {"e2e"},
	})
	if err != nil {
		return aws.Config{}, err
	}
	field := func(name string) string {
		_, rest, _ := strings.Cut(string(answer), "<"+name+">")
		value, _, _ := strings.Cut(rest, "<")
		return value
	}
	return account(aws.ToString(g.Account.BaseEndpoint), field("AccessKeyId"), field("SecretAccessKey"), field("SessionToken")), nil
}
