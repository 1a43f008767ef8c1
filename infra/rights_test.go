// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
)

// roles returns all roles of a stack, with every statement, as readable text.
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

// only returns the condition of a statement as text.
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

// The golden files list all rights, so that a reviewer sees each change of a right.
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

// Validate estimates the sizes of a stack. Each estimate must be equal to the real size or a little
// larger: REVIEW W4.
func TestLimitsAreThoseOfTheStack(t *testing.T) {
	t.Parallel()
	for _, stack := range []string{plainStack, fullStack} {
		s := stackOf(t, stack)
		n, sinks := names.Names{Stack: stack}, map[string][]string{
			plainStack: {"search"}, fullStack: {"archive", "search"},
		}[stack]
		policy, upstreams := operatorStatements, map[string]int{fullStack: 4 + 7*3 + 1 + 1 + 2*rolloutResources}[stack]
		for _, sink := range sinks {
			policy += operatorSize(n, sink)
		}
		got := policySize(t, s, "/Operator")
		if got > policy || stack == fullStack && got < policy*8/10 {
			t.Errorf("%s: the operator's policy has %d characters, computed as %d", stack, got, policy)
		}
		for _, sink := range sinks {
			s, most := stackOf(t, stack), indexStatements // and lists, which are short here
			if got := policySize(t, s, "/Sink-"+sink+"/IndexRole"); got > most {
				t.Errorf("%s: the policy of index of %s has %d characters, computed as %d", stack, sink, got, most)
			}
		}
		resources := stackResources + sinkResources*len(sinks) + upstreams
		if got := len(s.Resources); got > resources || got < resources-10 {
			t.Errorf("%s: %d resources, computed as %d", stack, got, resources)
		}
	}
}

// The places of the settings have as many characters in the policy as Validate counts.
func TestPlacesAreCountedAsTheyAreInThePolicy(t *testing.T) { // not parallel: only one test may load jsii
	places := []config.BucketPrefix{
		{Bucket: "bodies", Prefix: "published/"}, {Bucket: "bodies", Prefix: `a "quoted" folder/`}, {Bucket: "drafts"},
	}
	c := deployable("places")
	c.Payload.Allow = places
	s := &Sink{Name: "search", lull: &Lull{props: &Props{Config: c}}}
	got := 0
	for _, r := range s.references() {
		if len(r.resources) == 0 { // no role gets a right without resources
			continue
		}
		text, err := json.Marshal(r.resources)
		if err != nil {
			t.Fatal(err)
		}
		got += len(regexp.MustCompile(`\$\{Token\[[^]]*\]\}`).ReplaceAllString(strings.Trim(string(text), "[]"), "aws-us-gov"))
	}
	got += 2 // placesSize also counts a comma after the last text of each list
	if want := placesSize(places); got != want {
		t.Errorf("the places have %d characters, counted as %d", got, want)
	}
}

// policySize returns the size of a role's inline policy in characters. Like IAM, it does not count
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

// Roles have one inline policy and nothing else: no managed policies, and nothing that CDK adds.
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

// IAM refuses a policy that has two statements with the same name, so the deploy would fail.
func TestStatementsOfARoleHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, stack := range []string{plainStack, fullStack, serverlessStack} {
		seen := make(map[string]bool)
		for _, g := range stackOf(t, stack).grants() {
			if id := g.role + " " + g.sid; seen[id] {
				t.Errorf("%s: two statements have the name %s", stack, id)
			} else {
				seen[id] = true
			}
		}
	}
}

// The headers for sources and enrichers are secrets that only index reads, and index reads no other
// secrets.
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

// unnamed lists the actions that AWS does not grant on single resources. The service authorization
// reference names no resource type for these actions. A statement that names a resource does not
// grant them.
var unnamed = []string{
	"kafka:GetBootstrapBrokers",
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
				if slices.Contains(g.on, "*") != slices.Contains(unnamed, action) {
					t.Errorf("%s may %s on %q, want \"*\" if, and only if, AWS has no resource for it", g.role, action, g.on)
				}
			}
			for _, resource := range g.on {
				star := strings.Index(resource, "*")
				// A star is allowed for the end of a key below a prefix, and for the streams of a
				// log group.
				if star < 0 || resource == "*" || strings.HasSuffix(resource, ":*") ||
					strings.Contains(resource[:star], "/") {
					continue
				}
				t.Errorf("%s: %s", g.role, resource)
			}
		}
	}
}
