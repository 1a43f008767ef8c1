package infra

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/names"
)

// roles writes every role of a stack, with every statement, for people.
func roles(s *template) string {
	var b strings.Builder
	byPath := make(map[string]resource)
	for id, r := range s.all("AWS::IAM::Role") {
		byPath[strings.TrimSuffix(fmt.Sprint(r.Metadata["aws:cdk:path"]), "/Resource")] = s.Resources[id]
	}
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		r := byPath[path]
		fmt.Fprintf(&b, "%s\n", path)
		for _, st := range statements(r.Properties["AssumeRolePolicyDocument"]) {
			fmt.Fprintf(&b, "  assumed by %s%s\n", s.text(resolve(s, st["Principal"])), s.only(st))
		}
		for _, st := range statements(dig(r.Properties, "Policies", 0, "PolicyDocument")) {
			fmt.Fprintf(&b, "  %s: %s%s\n", st["Sid"], strings.Join(s.texts(st["Action"]), ", "), s.only(st))
			for _, resource := range s.texts(st["Resource"]) {
				fmt.Fprintf(&b, "    %s\n", resource)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// only is a statement's condition.
func (s *template) only(statement map[string]any) string {
	if statement["Condition"] == nil {
		return ""
	}
	text, err := json.Marshal(resolve(s, statement["Condition"]))
	if err != nil {
		return err.Error()
	}
	return " only " + string(text)
}

// Whoever changes a right reads it here, and so does whoever reviews it.
func TestRightsAreThoseThatWereReviewed(t *testing.T) {
	t.Parallel()
	for _, stack := range []string{plainStack, fullStack} {
		path := filepath.Join("testdata", "rights-"+stack+".golden")
		got := []byte(roles(stackOf(t, stack)))
		if *rewrite {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("the rights of %s differ from %s (review them, then go test -rewrite):\n%s", stack, path, got)
		}
	}
}

// What Validate computes of a stack's limits is what the stack has, or a little more: REVIEW W4.
func TestLimitsAreThoseOfTheStack(t *testing.T) {
	t.Parallel()
	for _, stack := range []string{plainStack, fullStack} {
		s := stackOf(t, stack)
		n, sinks := names.Names{Stack: stack}, map[string][]string{
			plainStack: {"search"}, fullStack: {"archive", "search"},
		}[stack]
		policy, upstreams := operatorStatements, map[string]int{fullStack: 4 + 7*3 + 1}[stack]
		for _, sink := range sinks {
			policy += operatorSize(n, sink)
		}
		got := policySize(t, s, "/Operator")
		if got > policy || stack == fullStack && got < policy*8/10 {
			t.Errorf("%s: the operator's policy has %d characters, computed as %d", stack, got, policy)
		}
		resources := stackResources + sinkResources*len(sinks) + upstreams
		if got := len(s.Resources); got > resources || got < resources-10 {
			t.Errorf("%s: %d resources, computed as %d", stack, got, resources)
		}
	}
}

// policySize is how many characters the inline policy of a role has for IAM, which counts no
// blanks.
func policySize(t *testing.T, s *template, path string) int {
	t.Helper()
	reference := strings.NewReplacer("${AWS::Partition}", "aws-us-gov", "${AWS::Region}", "us-gov-west-1",
		"${AWS::AccountId}", "123456789012", "${AWS::URLSuffix}", "amazonaws.com",
		"{queue ", "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:",
		"{bucket ", "arn:aws-us-gov:s3:::", "{globaltable ", "arn:aws-us-gov:dynamodb:us-gov-west-1:123456789012:table/")
	for _, r := range s.all("AWS::IAM::Role") {
		if !strings.HasSuffix(strings.TrimSuffix(word(r.Metadata["aws:cdk:path"]), "/Resource"), path) {
			continue
		}
		text, err := json.Marshal(resolve(s, dig(r.Properties, "Policies", 0, "PolicyDocument")))
		if err != nil {
			t.Fatal(err)
		}
		return len(reference.Replace(string(text)))
	}
	t.Fatalf("no role %s", path)
	return 0
}

// Inline policies of roles are all there are: nothing that CDK adds by itself, no managed policies.
func TestRolesHaveOneInlinePolicyAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, stack := range []string{plainStack, fullStack, testStack} {
		s := stackOf(t, stack)
		for _, kind := range []string{
			"AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::User",
			"AWS::Logs::ResourcePolicy",
		} {
			if found := s.all(kind); len(found) > 0 {
				t.Errorf("%s: %d of %s", stack, len(found), kind)
			}
		}
		for id, r := range s.all("AWS::IAM::Role") {
			if n := len(items(r.Properties["Policies"])); n != 1 || r.Properties["ManagedPolicyArns"] != nil {
				t.Errorf("%s: %s has %d inline policies and %v", stack, id, n, r.Properties["ManagedPolicyArns"])
			}
		}
	}
}

// IAM takes no policy with two statements of a name: the deployment would fail.
func TestStatementsOfARoleHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, stack := range []string{plainStack, fullStack, serverlessStack} {
		seen := make(map[string]bool)
		for _, g := range stackOf(t, stack).grants() {
			if id := g.role + " " + g.sid; seen[id] {
				t.Errorf("%s: %s stands twice", stack, id)
			} else {
				seen[id] = true
			}
		}
	}
}

// The headers for a source and for an enricher are secrets that only index reads, and index reads
// no others.
func TestOnlyIndexReadsTheSecretsOfHeaders(t *testing.T) {
	t.Parallel()
	var got []string
	for _, g := range stackOf(t, serverlessStack).grants() {
		for _, action := range g.actions {
			if strings.HasPrefix(action, "secretsmanager:") {
				got = append(got, g.role+" "+action+" "+strings.Join(g.on, " "))
			}
		}
	}
	want := []string{"serverless/Lull/Sink-search/IndexRole secretsmanager:GetSecretValue " + headersARN + " " + fetchARN}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// unnamed are the actions that AWS grants on no single resource.
var unnamed = []string{
	"cloudwatch:GetMetricData", "dynamodb:ListStreams", "kinesis:ListStreams",
	"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
	"ec2:DescribeNetworkInterfaces",
	"ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs", "ec2:UnassignPrivateIpAddresses",
	"logs:CreateLogDelivery", "logs:DeleteLogDelivery", "logs:DescribeLogGroups", "logs:DescribeResourcePolicies",
	"logs:GetLogDelivery",
	"logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:UpdateLogDelivery",
}

func TestWildcardsStandOnlyWhereAWSHasNone(t *testing.T) {
	t.Parallel()
	for _, stack := range []string{plainStack, fullStack} {
		for _, g := range stackOf(t, stack).grants() {
			for _, action := range g.actions {
				if strings.Contains(action, "*") {
					t.Errorf("%s may do %s", g.role, action)
				}
				if slices.Contains(g.on, "*") && !slices.Contains(unnamed, action) {
					t.Errorf("%s may %s on everything", g.role, action)
				}
			}
			for _, resource := range g.on {
				star := strings.Index(resource, "*")
				// The end of a key below a prefix, or a stream of a log group.
				if star < 0 || resource == "*" || strings.HasSuffix(resource, ":*") ||
					strings.Contains(resource[:star], "/") {
					continue
				}
				t.Errorf("%s: %s", g.role, resource)
			}
		}
	}
}
