// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/operator/verify"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink/opensearch"
	"github.com/lullhq/lull/source"
	format "github.com/lullhq/lull/source/json"
)

// jobProps are for a stack with a canary, whose sinks have each kind of credentials.
func jobProps(stack awscdk.Stack) *Props {
	c := deployable(jobStack)
	c.Sinks = map[string]config.Sink{
		"search": {Kind: "opensearch", Index: "lull-{collection}", URL: domainURL, Auth: config.Auth{Kind: config.AuthSigV4}},
		"archive": {
			Kind: "elasticsearch", Index: "lull-{collection}", URL: "https://archive.example.org",
			Auth: config.Auth{Kind: config.AuthBasic, SecretARN: secretARN},
		},
		"vectors": {
			Kind: "opensearch", Index: "lull-{collection}", URL: "https://abcdefghij0123456789.eu-west-1.aoss.amazonaws.com",
			Options: opensearch.Settings{Serverless: true}, Auth: config.Auth{Kind: config.AuthSigV4},
		},
		"hook": {Kind: "webhook", URL: "https://hook.example.org"},
	}
	c.DefaultSink, c.DefaultCollection = "search", "content"
	c.Collections = map[string]config.Collection{"content": {Sinks: []string{"search", "archive", "vectors", "hook"}}}
	c.Canary.Every = 15 * time.Minute
	c.Complete()
	return &Props{
		Config: c, AssetDir: folder + "/dist", ReadKeyARNs: []string{readKeyARN},
		Vpc: &Vpc{SubnetIDs: []string{"subnet-a"}, SecurityGroupIDs: []string{"sg-a"}},
		Key: awskms.Key_FromKeyArn(stack, jsii.String("Key"),
			jsii.String("arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555")),
	}
}

func TestJobRunsTheCanaryByItsRule(t *testing.T) {
	t.Parallel()
	s := stackOf(t, jobStack)
	s.same(t, "function", s.named(t, "AWS::Lambda::Function", "FunctionName", "work-job"), map[string]any{
		"Timeout": 300.0, "MemorySize": 256.0, "Handler": "bootstrap", "Runtime": "provided.al2023",
		"Architectures.#0": "arm64", "Environment.Variables.LULL_SINK": "search",
		"Environment.Variables.LULL_TABLE": "{globaltable work-shards}",
		"Environment.Variables.LULL_BULK_QUEUE_URLS": "{queue work-archive-bulk},{queue work-hook-bulk}," +
			"{queue work-search-bulk},{queue work-vectors-bulk}",
		"Environment.Variables.LULL_LIVE_QUEUE_URLS": "{queue work-archive-live},{queue work-hook-live}," +
			"{queue work-search-live},{queue work-vectors-live}",
		"VpcConfig.SubnetIds.#0": "subnet-a", "ReservedConcurrentExecutions": nil,
	})
	s.same(t, "rule", s.named(t, "AWS::Events::Rule", "Name", "work-job-canary"), map[string]any{
		"ScheduleExpression": "rate(15 minutes)", "State": "ENABLED", "Targets.#0.Input": `{"work":"canary"}`,
		"Targets.#0.RetryPolicy.MaximumRetryAttempts": 0.0, "Targets.#1": nil,
	})
	for name, want := range map[string]map[string]any{
		"work-job-idle": {
			"Period": nil, "EvaluationPeriods": 1.0, "ComparisonOperator": "LessThanThreshold", "Threshold": 1.0,
			"TreatMissingData": "breaching", "Metrics.#0.MetricStat.Period": 2220.0,
		},
		"work-archive-canary": {
			"MetricName": "CanaryFailed", "Period": 1080.0, "EvaluationPeriods": 1.0, "Threshold": 1.0,
			"Dimensions.#1.Value": "work", "Dimensions.#0.Value": "archive", "TreatMissingData": "notBreaching",
		},
	} {
		s.same(t, name, s.named(t, "AWS::CloudWatch::Alarm", "AlarmName", name), want)
	}
}

// The role allows exactly the calls of the canary.
func TestJobMayOnlyDoTheCallsOfTheCanary(t *testing.T) {
	t.Parallel()
	s := stackOf(t, jobStack)
	got := map[string]string{}
	for _, g := range s.grants() {
		if strings.HasSuffix(g.role, "/JobRole") {
			got[g.sid] = strings.Join(g.actions, " ") + " on " + strings.Join(g.on, " ")
		}
	}
	domain := "arn:${AWS::Partition}:es:eu-west-1:${AWS::AccountId}:domain/content"
	for sid, want := range map[string]string{
		"CanaryRows":      "dynamodb:BatchGetItem on {globaltable work-shards}",
		"Jobs":            "dynamodb:UpdateItem on {globaltable work-shards}",
		"PublishCanary":   "sqs:SendMessage on {queue work-archive-live} {queue work-hook-live} {queue work-search-live} {queue work-vectors-live}",
		"ReadSink":        "es:ESHttpPost on " + domain + "/_mget",
		"ReadCollection":  "aoss:APIAccessAll on arn:${AWS::Partition}:aoss:eu-west-1:${AWS::AccountId}:collection/abcdefghij0123456789",
		"ReadPassword":    "secretsmanager:GetSecretValue on " + secretARN,
		"DecryptPassword": "kms:Decrypt kms:DescribeKey on " + readKeyARN,
		"UseKey":          "kms:Decrypt kms:GenerateDataKey on arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555",
		"UseTableKey": "kms:DescribeKey kms:Encrypt kms:ReEncryptFrom kms:ReEncryptTo on " +
			"arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555",
		"Log": "logs:CreateLogStream logs:PutLogEvents on " +
			"arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:/aws/lambda/work-job:*",
	} {
		if got[sid] != want {
			t.Errorf("%s: got %s, want %s", sid, got[sid], want)
		}
		delete(got, sid)
	}
	delete(got, "NetworkInterface")
	if len(got) > 0 {
		t.Errorf("the role has more rights: %v", got)
	}
}

// The canary reads the rows of its document, of jobs and of the sinks' health, and no other row.
func TestTheCanaryReadsOnlyItsRows(t *testing.T) {
	t.Parallel()
	only := map[string]map[string][]string{"ForAllValues:StringLike": {"dynamodb:LeadingKeys": canaryKeys()}}
	for key, want := range map[string]bool{
		"content#lull-canary": true, "content@archive#lull-canary": true, "content#lull-canary-2": true,
		string(shard.HealthRow("search")): true, string(shard.RunRow("job-canary-search")): true,
		string(shard.RunRow("jobs")): true, "content#1": false, "!dead#x": false, string(shard.RunRow("prune-search")): false,
	} {
		if got := allowedBy(only, key); got != want {
			t.Errorf("%s: got %t, want %t", key, got, want)
		}
	}
}

// verifyProps are for a stack that verifies one of its collections, and has no canary.
func verifyProps() *Props {
	c := deployable(verifyStack)
	c.Sinks = map[string]config.Sink{
		"search":  {Kind: "opensearch", Index: "lull-{collection}", URL: domainURL, Auth: config.Auth{Kind: config.AuthSigV4}},
		"archive": {Kind: "opensearch", Index: "lull-{collection}", URL: "https://archive.example.org"},
	}
	c.Sources = map[string]config.Source{"cms": {Kind: "native", Class: config.ClassInt, Collections: []string{"content"}, Fetch: &source.Fetch{
		URL: "https://cms.example.org/{id}", Version: "/version", Headers: source.Headers{SecretARN: fetchARN},
	}}}
	c.DefaultSource, c.DefaultSink, c.DefaultCollection = "", "search", "content"
	c.Collections = map[string]config.Collection{
		"content": {Verify: &config.Verify{Every: 24 * time.Hour}}, "news": {Sink: "archive"},
	}
	c.Complete()
	return &Props{Config: c, AssetDir: folder + "/dist"}
}

func TestJobCarriesVerificationsOnByItsRule(t *testing.T) {
	t.Parallel()
	s := stackOf(t, verifyStack)
	s.same(t, "rule", s.named(t, "AWS::Events::Rule", "Name", "heal-job-verify"), map[string]any{
		"ScheduleExpression": "rate(5 minutes)", "Targets.#0.Input": `{"work":"verify"}`, "Targets.#1": nil,
	})
	s.same(t, "alarm", s.named(t, "AWS::CloudWatch::Alarm", "AlarmName", "heal-job-idle"), map[string]any{
		"Metrics.#0.MetricStat.Period": 720.0,
	})
	for _, r := range s.all("AWS::Events::Rule") {
		if word(r.Properties["Name"]) == "heal-job-canary" {
			t.Error("there is a rule for a canary, which the settings do not ask for")
		}
	}
}

// The role may touch the rows, the queue and the sink of the verified collection, and no others.
func TestJobMayOnlyRepairWhatIsVerified(t *testing.T) {
	t.Parallel()
	s := stackOf(t, verifyStack)
	got := map[string]string{}
	for _, g := range s.grants() {
		if strings.HasSuffix(g.role, "/JobRole") {
			got[g.sid] = strings.Join(g.actions, " ") + " on " + strings.Join(g.on, " ") + s.only(g.statement)
		}
	}
	domain := "arn:${AWS::Partition}:es:eu-west-1:${AWS::AccountId}:domain/content"
	for sid, want := range map[string]string{
		"VerifyRows": "dynamodb:BatchGetItem dynamodb:Scan on {globaltable heal-shards}",
		"RepairRows": `dynamodb:UpdateItem on {globaltable heal-shards} only ` +
			`{"ForAllValues:StringLike":{"dynamodb:LeadingKeys":["content#*","!health#*"]}}`,
		"Touch":       "sqs:SendMessage on {queue heal-search-bulk}",
		"RepairSink":  "es:ESHttpPost on " + domain + "/*/_refresh " + domain + "/*/_search " + domain + "/_bulk",
		"ResolveSink": "es:ESHttpGet on " + domain + " " + domain + "/ " + domain + "/_resolve/index/*",
		"ReadHeaders": "secretsmanager:GetSecretValue on " + fetchARN,
	} {
		if got[sid] != want {
			t.Errorf("%s: got %s, want %s", sid, got[sid], want)
		}
	}
	for _, sid := range []string{"PublishCanary", "CanaryRows", "ReadPassword"} {
		if got[sid] != "" {
			t.Errorf("the role has %s: %s", sid, got[sid])
		}
	}
}

// A canary that could never pass is refused before it is deployed.
func TestACanaryWithoutADocumentIsRefused(t *testing.T) {
	t.Parallel()
	stackOf(t, plainStack) // starts the runtime
	for name, tt := range map[string]struct {
		change func(c *config.Config)
		says   string // empty if the canary is accepted
	}{
		"the defaults": {func(*config.Config) {}, ""},
		"a sink without a collection": {func(c *config.Config) {
			c.Sinks["idle"] = c.Sinks["search"]
		}, "idle"},
		"no deletes": {func(c *config.Config) {
			c.Sources = map[string]config.Source{"puts": {
				Kind: "json", Class: config.ClassInt, Options: format.Options{JSON: format.Pointers{ID: "/id", Version: "/v"}},
			}}
			c.DefaultSource = ""
		}, "no source can write and delete"},
		"another collection": {func(c *config.Config) {
			c.Collections["news"], c.Canary.Collections = config.Collection{Sink: "idle"}, []string{"news"}
			c.Sinks["idle"] = c.Sinks["search"]
		}, ""},
	} {
		c := deployable("lull")
		c.Collections, c.DefaultCollection = map[string]config.Collection{"content": {}}, "content"
		c.DefaultSink, c.Canary.Every = "search", 15*time.Minute
		tt.change(c)
		c.Complete()
		p := &Props{Config: c}
		var fs faultList
		p.checkCanary(&fs)
		if got := errors.Join(fs...); (got == nil) != (tt.says == "") ||
			got != nil && !strings.Contains(got.Error(), tt.says) {
			t.Errorf("%s: got %v, want %q", name, got, tt.says)
		}
	}
}

// A verification that could repair nothing is refused before it is deployed.
func TestAVerificationThatCannotRepairIsRefused(t *testing.T) {
	t.Parallel()
	stackOf(t, plainStack) // starts the runtime
	of := func(kind string) func(c *config.Config) {
		return func(c *config.Config) {
			s := c.Sources["cms"]
			s.Kind = kind
			c.Sources["cms"] = s
		}
	}
	for name, tt := range map[string]struct {
		change func(c *config.Config)
		says   string // empty if the verification is accepted
	}{
		"native": {func(*config.Config) {}, ""},
		"s3":     {of("s3"), "cannot write a message of the source"},
		"too many": {func(c *config.Config) {
			s := c.Sources["cms"]
			for i := range verify.MaxScheduled {
				more := fmt.Sprintf("more%d", i)
				c.Collections[more], s.Collections = c.Collections["content"], append(s.Collections, more)
			}
			c.Sources["cms"] = s
		}, "orders 31 verifications"},
	} {
		p := verifyProps()
		tt.change(p.Config)
		p.Config.Complete()
		var fs faultList
		p.checkVerify(&fs)
		if got := errors.Join(fs...); (got == nil) != (tt.says == "") ||
			got != nil && !strings.Contains(got.Error(), tt.says) {
			t.Errorf("%s: got %v, want %q", name, got, tt.says)
		}
	}
}

func TestWithoutACanaryThereIsNoJob(t *testing.T) {
	t.Parallel()
	for _, stack := range []string{plainStack, fullStack, serverlessStack, testStack} {
		for _, r := range stackOf(t, stack).all("AWS::Lambda::Function") {
			if name := word(r.Properties["FunctionName"]); strings.HasSuffix(name, "-"+string(names.Job)) {
				t.Errorf("%s has %s", stack, name)
			}
		}
	}
}

// Validate counts the resources of the function job.
func TestTheResourcesOfJobAreCounted(t *testing.T) {
	t.Parallel()
	with, sinks := 0, 4
	for _, r := range stackOf(t, jobStack).Resources {
		if !strings.Contains(word(r.Metadata["aws:cdk:path"]), "/Sink-") {
			with++
		}
	}
	without := 0
	for _, r := range stackOf(t, plainStack).Resources {
		if !strings.Contains(word(r.Metadata["aws:cdk:path"]), "/Sink-") {
			without++
		}
	}
	// One alarm of each sink is in the sink's own count.
	if got, want := with-without, jobResources+workResources; got > want || got < want-2 {
		t.Errorf("job has %d resources beside the %d sinks, counted as %d", got, sinks, want)
	}
}
