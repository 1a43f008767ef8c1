// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"strings"
	"testing"
)

func TestSearchableIsAFunctionWithAUrlForPrincipals(t *testing.T) {
	t.Parallel()
	s := stackOf(t, searchableStack)
	s.same(t, "function", s.named(t, "AWS::Lambda::Function", "FunctionName", "asked-searchable"), map[string]any{
		"Timeout": 28.0, "ReservedConcurrentExecutions": 20.0, "VpcConfig": nil,
		"Environment.Variables.LULL_TABLE": "{globaltable asked-shards}", "Environment.Variables.LULL_SINK": nil,
	})
	s.same(t, "url", s.named(t, "AWS::Lambda::Url", "AuthType", "AWS_IAM"), map[string]any{
		"AuthType": "AWS_IAM", "TargetFunctionArn": "{function asked-searchable}", "Cors": nil,
	})
	if all := s.all("AWS::Lambda::Permission"); len(all) != len(stackOf(t, plainStack).all("AWS::Lambda::Permission")) {
		t.Error("a policy of the function lets somebody call it")
	}
	if got, most := len(s.Resources), stackResources+sinkResources+searchableResources; got > most {
		t.Errorf("%d resources, computed as %d", got, most)
	}
	for _, name := range []string{"asked-function-errors-searchable", "asked-throttles-searchable"} {
		s.named(t, "AWS::CloudWatch::Alarm", "AlarmName", name)
	}
}

// The function reads rows by their keys, and only senders may call it.
func TestSearchableMayOnlyReadRows(t *testing.T) {
	t.Parallel()
	s := stackOf(t, searchableStack)
	got := make(map[string][]string)
	for _, g := range s.grants() {
		path := g.role[strings.LastIndex(g.role, "/"):]
		got[path] = append(got[path], strings.Join(g.actions, " ")+" on "+strings.Join(g.on, " "))
	}
	account := "${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:asked-searchable"
	for path, want := range map[string]string{
		"/SearchableRole": "dynamodb:BatchGetItem on {globaltable asked-shards}; " +
			"logs:CreateLogStream logs:PutLogEvents on " +
			"arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/aws/lambda/asked-searchable:*",
		"/Publisher": "lambda:InvokeFunctionUrl on arn:" + account + "; lambda:InvokeFunction on arn:" + account,
	} {
		if may := strings.Join(got[path], "; "); !strings.HasSuffix(may, want) {
			t.Errorf("%s may %s, want %s", path, may, want)
		}
	}
}

func TestWithoutTheSettingThereIsNoUrl(t *testing.T) {
	t.Parallel()
	for _, name := range []string{plainStack, fullStack} {
		s := stackOf(t, name)
		if urls := s.all("AWS::Lambda::Url"); len(urls) > 0 {
			t.Errorf("%s: got %d URLs", name, len(urls))
		}
		for _, g := range s.grants() {
			if strings.Contains(strings.Join(g.actions, " "), "FunctionUrl") {
				t.Errorf("%s: %s may call a URL", name, g.role)
			}
		}
	}
}
