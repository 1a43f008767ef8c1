// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
)

// Costs are split by the tags of stack and sink.
func TestEveryResourceThatCostsHasTags(t *testing.T) {
	t.Parallel()
	s := stackOf(t, fullStack)
	tags := func(list any) map[string]string {
		found := make(map[string]string)
		for _, tag := range items(list) {
			found[word(dig(tag, "Key"))] = word(dig(tag, "Value"))
		}
		return found
	}
	perSink := 0
	for id, r := range s.Resources {
		got := tags(r.Properties["Tags"])
		switch r.Type {
		case "AWS::DynamoDB::GlobalTable":
			got = tags(dig(items(r.Properties["Replicas"])[0], "Tags"))
		case "AWS::Pipes::Pipe": // its tags are a map
			got = map[string]string{stackTag: word(dig(r.Properties["Tags"], stackTag)), sinkTag: word(dig(r.Properties["Tags"], sinkTag))}
		case "AWS::CloudWatch::Alarm", "AWS::Lambda::Function", "AWS::Logs::LogGroup", "AWS::S3::Bucket", "AWS::SQS::Queue",
			"AWS::StepFunctions::StateMachine":
		default:
			continue
		}
		if got[stackTag] != fullStack {
			t.Errorf("%s %s has the tags %v, want %s=%s", r.Type, id, got, stackTag, fullStack)
		}
		if strings.Contains(id, "Sink") && r.Type == "AWS::SQS::Queue" {
			perSink++
			if name := s.text(r.Properties["QueueName"]); got[sinkTag] == "" || !strings.Contains(name, "-"+got[sinkTag]+"-") {
				t.Errorf("the queue %s has the tag %s=%s", name, sinkTag, got[sinkTag])
			}
		}
	}
	if perSink == 0 {
		t.Error("no queue of a sink was found")
	}
}

func TestFunctionsAreDeployedAsTheSettingsSay(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	if got := len(s.all("AWS::Lambda::Function")); got != 4 {
		t.Errorf("got %d functions, want 4 and no helper of CDK's", got)
	}
	for f, timeout := range map[names.Function]float64{
		names.Receive: 6, names.Index: 10, names.Prune: 60,
		names.DLQ: 30,
	} {
		name := "plain-search-" + string(f)
		r := s.named(t, "AWS::Lambda::Function", "FunctionName", name)
		s.same(t, name, r, map[string]any{
			"Runtime": "provided.al2023", "Handler": "bootstrap", "Architectures.#0": "arm64", "Architectures.#1": nil,
			"Timeout": timeout, "MemorySize": float64(f.Megabytes()),
			"LoggingConfig.LogFormat": "JSON", "LoggingConfig.SystemLogLevel": "WARN",
			"LoggingConfig.ApplicationLogLevel":    "INFO",
			"Environment.Variables.LULL_LOG_LEVEL": "INFO",
			"RecursiveLoop":                        "Allow", "VpcConfig": nil, "Layers": nil,
			"DeadLetterConfig":             nil,
			"ReservedConcurrentExecutions": nil,
			"LoggingConfig.LogGroup":       "{loggroup /aws/lambda/" + name + "}",
		})
		log := s.named(t, "AWS::Logs::LogGroup", "LogGroupName", "/aws/lambda/"+name)
		s.same(t, name, log, map[string]any{"RetentionInDays": 30.0})
	}
}

// Lambda refuses a mapping if the function may run longer than its queue keeps messages invisible.
func TestNoFunctionOutlivesItsQueuesVisibility(t *testing.T) {
	t.Parallel()
	for _, stack := range []string{plainStack, fullStack, testStack} {
		s := stackOf(t, stack)
		for id, m := range s.all("AWS::Lambda::EventSourceMapping") {
			var visibility, timeout float64
			for qid, q := range s.all("AWS::SQS::Queue") {
				if s.reference(qid) == s.text(m.Properties["EventSourceArn"]) {
					visibility = number(q.Properties["VisibilityTimeout"])
				}
			}
			f := s.text(s.alias(m).Properties["FunctionName"])
			for fid, r := range s.all("AWS::Lambda::Function") {
				if s.reference(fid) == f {
					timeout = number(r.Properties["Timeout"])
				}
			}
			window := number(m.Properties["MaximumBatchingWindowInSeconds"])
			if timeout == 0 || visibility < 6*timeout+window {
				t.Errorf("%s: visibility %v s, function %v s, window %v s", id, visibility, timeout, window)
			}
		}
	}
}

func TestTheEnvironmentHoldsNamesAndARNsOnly(t *testing.T) {
	t.Parallel()
	s := stackOf(t, fullStack)
	machines := func(more map[string]string) map[string]string {
		machine := "arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:full-archive-"
		more[lambda.EnvExpress], more[lambda.EnvStandard] = machine+"express", machine+"standard"
		return more
	}
	common := map[string]string{
		lambda.EnvSink: "archive", lambda.EnvLogLevel: "DEBUG", lambda.EnvTable: "{globaltable full-shards}",
		lambda.EnvBucket:    "{bucket full-${AWS::AccountId}-${AWS::Region}}",
		lambda.EnvLiveQueue: "{queue full-archive-live}", lambda.EnvBulkQueue: "{queue full-archive-bulk}",
	}
	const senders = "{full/Lull/Sink-archive/ReceiveRole}.RoleId,{full/Lull/Sink-archive/IndexRole}.RoleId," +
		"{full/Lull/Sink-archive/PruneRole}.RoleId,{full/Lull/Sink-archive/DlqRole}.RoleId," +
		"{role full-operator-${AWS::Region}}.RoleId,${AWS::AccountId}"
	for f, more := range map[names.Function]map[string]string{
		names.Receive: machines(map[string]string{
			lambda.EnvDeadQueue: "{queue full-archive-dead}", lambda.EnvSenders: senders,
		}),
		names.Index: machines(map[string]string{lambda.EnvDeadQueue: "{queue full-archive-dead}"}),
		names.Prune: machines(map[string]string{}),
		names.DLQ: {
			lambda.EnvDeadQueue: "{queue full-archive-dead}",
			lambda.EnvSenders:   senders,
		},
	} {
		got := make(map[string]string)
		function := s.named(t, "AWS::Lambda::Function", "FunctionName", "full-archive-"+string(f))
		for name, value := range fields(dig(function.Properties, "Environment", "Variables")) {
			got[name] = s.text(value)
		}
		for name, value := range common {
			more[name] = value
		}
		if !reflect.DeepEqual(got, more) {
			t.Errorf("%s: got %v, want %v", f, got, more)
		}
	}
}

// The memory of the settings, and concurrency, log level and warm throughput of Props arrive in the
// template.
func TestFunctionsAndTableTakeWhatPropsSay(t *testing.T) {
	t.Parallel()
	s := stackOf(t, fullStack)
	for f, want := range map[names.Function]map[string]any{
		names.Receive: {"MemorySize": 1024.0, "ReservedConcurrentExecutions": nil},
		names.Index:   {"MemorySize": 1024.0, "ReservedConcurrentExecutions": 25.0},
		names.DLQ:     {"MemorySize": 256.0, "ReservedConcurrentExecutions": nil},
	} {
		want["LoggingConfig.ApplicationLogLevel"] = "DEBUG"
		s.same(t, string(f), s.named(t, "AWS::Lambda::Function", "FunctionName", "full-search-"+string(f)), want)
	}
	// The settings of a sink override Props.
	s.same(t, "archive", s.named(t, "AWS::Lambda::Function", "FunctionName", "full-archive-index"),
		map[string]any{"ReservedConcurrentExecutions": 7.0})
	s.same(t, "table", s.named(t, "AWS::DynamoDB::GlobalTable", "TableName", "full-shards"), map[string]any{
		"WarmThroughput.ReadUnitsPerSecond": 24_000.0, "WarmThroughput.WriteUnitsPerSecond": 8_000.0,
		"GlobalSecondaryIndexes.#0.WarmThroughput.ReadUnitsPerSecond":  24_000.0,
		"GlobalSecondaryIndexes.#0.WarmThroughput.WriteUnitsPerSecond": 8_000.0,
	})
	s.same(t, "table", stackOf(t, plainStack).named(t, "AWS::DynamoDB::GlobalTable", "TableName", "plain-shards"),
		map[string]any{"WarmThroughput": nil, "GlobalSecondaryIndexes.#0.WarmThroughput": nil})
}

func TestOnlyIndexIsInTheVPC(t *testing.T) {
	t.Parallel()
	s := stackOf(t, fullStack)
	for _, r := range s.all("AWS::Lambda::Function") {
		name := s.text(r.Properties["FunctionName"])
		want := any(nil)
		if strings.HasSuffix(name, "-index") {
			want = map[string]any{"SubnetIds": []any{"subnet-a", "subnet-b"}, "SecurityGroupIds": []any{"sg-a"}}
		}
		if got := r.Properties["VpcConfig"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// The four functions were once built from one folder, and all got the same binary. The function
// index must have the program of its sink's kind.
func TestEachFunctionHasItsOwnProgramAndTheSettings(t *testing.T) {
	t.Parallel()
	for stack, programs := range map[string]int{plainStack: 4, fullStack: 5} {
		s := stackOf(t, stack)
		keys := make(map[string]string) // object key -> program
		for _, r := range s.all("AWS::Lambda::Function") {
			name := s.text(r.Properties["FunctionName"])
			f := name[strings.LastIndex(name, "-")+1:]
			if f == "index" {
				kind := "opensearch"
				if strings.Contains(name, "-archive-") {
					kind = "elasticsearch"
				}
				f += "/" + kind
			}
			key := word(dig(r.Properties, "Code", "S3Key"))
			if other, taken := keys[key]; taken && other != f {
				t.Errorf("%s: %s and %s have one program", stack, f, other)
			}
			keys[key] = f
		}
		if len(keys) != programs {
			t.Errorf("%s: got %d programs, want %d", stack, len(keys), programs)
		}
		for hash, file := range s.assets.Files {
			f, ok := keys[hash+".zip"]
			if !ok {
				continue // the template itself
			}
			dir := filepath.Join(folder, "out", file.Source.Path)
			program, err := os.ReadFile(filepath.Join(dir, "bootstrap"))
			if err != nil || !strings.HasSuffix(string(program), f) {
				t.Errorf("%s: the program of %s ends in %q: %v", stack, f, program[max(0, len(program)-10):], err)
			}
			if info, err := os.Stat(filepath.Join(dir, "bootstrap")); err != nil || info.Mode().Perm()&0o111 != 0o111 {
				t.Errorf("%s: the program of %s cannot be run: %v", stack, f, err)
			}
			c, err := config.LoadDeployed(filepath.Join(dir, "config.json"))
			if err != nil {
				t.Errorf("%s: settings of %s: %v", stack, f, err)
				continue
			}
			if err := c.ValidateDeployed(); err != nil || c.Stack != stack {
				t.Errorf("%s: settings of %s are those of %s: %v", stack, f, c.Stack, err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
				t.Errorf("%s: %s is deployed with %v: %v", stack, f, entries, err)
			}
			delete(keys, hash+".zip")
		}
		if len(keys) != 0 {
			t.Errorf("%s: no asset for %v", stack, keys)
		}
	}
}

func TestMappingsHoldMessagesAndFilterNone(t *testing.T) {
	t.Parallel()
	for stack, want := range map[string]map[string]string{
		plainStack: {
			"{queue plain-search-live}": `{"BatchSize":1000,"Concurrency":{"Ref":"AWS::NoValue"},"Window":3}`,
			"{queue plain-search-bulk}": `{"BatchSize":1000,"Concurrency":4,"Window":3}`,
			"{queue plain-search-dead}": `{"BatchSize":10,"Concurrency":2,"Window":null}`,
		},
		testStack: {
			"{queue ephemeral-search-live}": `{"BatchSize":10,"Concurrency":2,"Window":null}`,
			"{queue ephemeral-search-bulk}": `{"BatchSize":1000,"Concurrency":4,"Window":3}`,
			"{queue ephemeral-search-dead}": `{"BatchSize":10,"Concurrency":2,"Window":null}`,
		},
	} {
		s := stackOf(t, stack)
		got := make(map[string]string)
		for id, m := range s.all("AWS::Lambda::EventSourceMapping") {
			s.same(t, id, m, map[string]any{
				"FunctionResponseTypes": []any{"ReportBatchItemFailures"}, "FilterCriteria": nil, "Enabled": nil,
				"DestinationConfig": nil,
			})
			if s.alias(m).Type == "" {
				t.Errorf("%s calls %v, want an alias", id, m.Properties["FunctionName"])
			}
			text, err := json.Marshal(map[string]any{
				"BatchSize": m.Properties["BatchSize"], "Window": m.Properties["MaximumBatchingWindowInSeconds"],
				"Concurrency": dig(m.Properties, "ScalingConfig", "MaximumConcurrency"),
			})
			if err != nil {
				t.Fatal(err)
			}
			got[s.text(m.Properties["EventSourceArn"])] = string(text)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", stack, got, want)
		}
	}
}

func TestTheStateMachinesCallIndexByItsAliasAndLogFailuresOnly(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{
		"plain-search": "express", "full-archive": "standard", "full-search": "express",
	} {
		stack, sink, _ := strings.Cut(name, "-")
		s := stackOf(t, stack)
		r := s.named(t, "AWS::StepFunctions::StateMachine", "StateMachineName", name+"-"+kind)
		s.same(t, name, r, map[string]any{
			"StateMachineType": strings.ToUpper(kind), "LoggingConfiguration.Level": "ERROR",
			"LoggingConfiguration.IncludeExecutionData": false, "DefinitionS3Location": nil,
			"DefinitionSubstitutions": nil,
			"LoggingConfiguration.Destinations.#0.CloudWatchLogsLogGroup.LogGroupArn": "{loggroup /aws/vendedlogs/states/" + name + "}",
		})
		var deployed map[string]any
		if err := json.Unmarshal([]byte(s.text(r.Properties["DefinitionString"])), &deployed); err != nil {
			t.Fatalf("%s: %v in %s", name, err, s.text(r.Properties["DefinitionString"]))
		}
		if got, want := dig(deployed, "States", "Index", "Arguments", "FunctionName"),
			"{"+stack+"/Lull/Sink-"+sink+"/IndexAlias}"; got != want {
			t.Errorf("%s calls %s, want %s", name, got, want)
		}
	}
}

// flight.kind may be changed on a live stack: REVIEW W3. Both state machines always exist and stay
// unchanged, because a machine's type cannot change under its name. Only the functions' environment
// changes.
func TestChangingTheKindOfFlightsReplacesNothing(t *testing.T) {
	t.Parallel()
	express, standard := stackOf(t, plainStack), stackOf(t, standardStack)
	for id, r := range express.Resources {
		if strings.HasPrefix(r.Type, "AWS::Lambda::") { // its environment changes, and so does its version
			continue
		}
		if other, ok := standard.Resources[id]; !ok || !reflect.DeepEqual(r.Properties, other.Properties) {
			t.Errorf("%s (%s) is another one with Standard flights", id, r.Type)
		}
	}
	if a, b := len(express.Resources), len(standard.Resources); a != b {
		t.Errorf("%d resources with Express flights, %d with Standard ones", a, b)
	}
}

func TestPruneRunsByItsRuleAndAfterADeploy(t *testing.T) {
	t.Parallel()
	s := stackOf(t, testStack)
	rules := s.all("AWS::Events::Rule")
	if len(rules) != 2 {
		t.Errorf("got %d rules, want 2", len(rules))
	}
	every := s.named(t, "AWS::Events::Rule", "Name", "ephemeral-search-prune")
	s.same(t, "rule", every, map[string]any{
		"ScheduleExpression": "rate(1 minute)", "State": "ENABLED",
		"EventPattern": nil,
	})
	first := s.named(t, "AWS::Events::Rule", "Name", "ephemeral-search-first")
	s.same(t, "first run", first, map[string]any{
		"ScheduleExpression": nil, "State": "ENABLED",
		"EventPattern": map[string]any{
			"source": []any{"aws.cloudformation"}, "detail-type": []any{"CloudFormation Stack Status Change"},
			"detail": map[string]any{
				"stack-id":       []any{map[string]any{"Ref": "AWS::StackId"}},
				"status-details": map[string]any{"status": []any{"CREATE_COMPLETE", "UPDATE_COMPLETE"}},
			},
		},
	})
	allowed := make(map[string]bool)
	for _, p := range s.all("AWS::Lambda::Permission") {
		s.same(t, "permission", p, map[string]any{"Action": "lambda:InvokeFunction", "Principal": "events.amazonaws.com"})
		allowed[s.text(p.Properties["FunctionName"])+" by "+s.text(p.Properties["SourceArn"])] = true
	}
	if len(allowed) != 2 {
		t.Errorf("got permissions %v, want one for each rule", allowed)
	}
	for _, r := range []resource{every, first} {
		s.same(t, "target", r, map[string]any{
			"Targets.#0.Arn": "{ephemeral/Lull/Sink-search/PruneAlias}",
			"Targets.#1":     nil, "Targets.#0.RetryPolicy.MaximumRetryAttempts": 0.0,
			"Targets.#0.RetryPolicy.MaximumEventAgeInSeconds": 60.0,
		})
	}
	for _, r := range s.all("AWS::Lambda::EventInvokeConfig") {
		s.same(t, "asynchronous calls", r, map[string]any{"MaximumRetryAttempts": 0.0, "MaximumEventAgeInSeconds": 60.0})
	}
}

func TestUpstreamsMaySendAndNobodyElse(t *testing.T) {
	t.Parallel()
	s := stackOf(t, fullStack)
	var got []string
	for _, r := range s.all("AWS::SQS::QueuePolicy") {
		for _, st := range statements(r.Properties["PolicyDocument"]) {
			if st["Effect"] != "Allow" {
				continue
			}
			condition, err := json.Marshal(resolve(s, st["Condition"]))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s.text(resolve(s, st["Principal"]))+" "+strings.Join(s.texts(st["Action"]), ",")+" "+
				s.text(st["Resource"])+" "+string(condition))
		}
	}
	slices.Sort(got)
	want := []string{
		`{"AWS":"arn:${AWS::Partition}:iam::444455556666:root"} sqs:SendMessage {queue full-archive-live} null`,
		`{"Service":"events.amazonaws.com"} sqs:SendMessage {queue full-search-bulk} {"ArnEquals":{"aws:SourceArn":"{full/Lull/Sink-search/Upstream1}"}}`,
		`{"Service":"events.amazonaws.com"} sqs:SendMessage {queue full-search-dead} {"ArnEquals":{"aws:SourceArn":"{full/Lull/Sink-search/Upstream1}"}}`,
		`{"Service":"s3.amazonaws.com"} sqs:SendMessage {queue full-archive-bulk} {"ArnEquals":{"aws:SourceArn":"` +
			bucketARN + `"},"StringEquals":{"aws:SourceAccount":"${AWS::AccountId}"}}`,
		`{"Service":"sns.amazonaws.com"} sqs:SendMessage {queue full-search-dead} {"ArnEquals":{"aws:SourceArn":"` +
			topicARN + `"}}`,
		`{"Service":"sns.amazonaws.com"} sqs:SendMessage {queue full-search-live} {"ArnEquals":{"aws:SourceArn":"` +
			topicARN + `"}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, r := range s.all("AWS::SNS::Subscription") {
		s.same(t, "subscription", r, map[string]any{
			"Protocol": "sqs", "TopicArn": topicARN, "RawMessageDelivery": false, // a rule names the topic
			"FilterPolicy": nil, "RedrivePolicy.deadLetterTargetArn": "{queue full-search-dead}",
		})
	}
}

// resolve replaces every reference in a value by text.
func resolve(s *template, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, function := range []string{"Ref", "Fn::GetAtt", "Fn::Join"} {
			if _, ok := v[function]; ok {
				return s.text(v)
			}
		}
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = resolve(s, item)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = resolve(s, item)
		}
		return out
	}
	return v
}

// CDK accepts its own objects by interface. A struct that embeds such an object would compile as an
// argument of CDK, and then panic.
func TestHoldersDoNotPassForWhatTheyHold(t *testing.T) {
	t.Parallel()
	for _, holder := range []any{&Deployed{}, Operator{}, &Operator{}} {
		if _, is := holder.(awsiam.IGrantable); is {
			t.Errorf("%T can be passed to CDK as an object to which rights are granted", holder)
		}
	}
}
