// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/config"
)

// This file tests properties that emulators ignore. Without these tests, an operator would notice a
// missing property only when it is needed.

func TestTheTableSurvivesItsStackAndMistakes(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	r := s.named(t, "AWS::DynamoDB::GlobalTable", "TableName", "plain-shards")
	s.same(t, "table", r, map[string]any{
		"BillingMode":                                "PAY_PER_REQUEST",
		"TimeToLiveSpecification.AttributeName":      dynamodb.TTLAttribute,
		"TimeToLiveSpecification.Enabled":            true,
		"Replicas.#0.DeletionProtectionEnabled":      false, // Props.Protect is set after the first deploy
		"Replicas.#1":                                nil,
		"GlobalSecondaryIndexes.#0.IndexName":        dynamodb.IndexName,
		"GlobalSecondaryIndexes.#1":                  nil,
		"SSESpecification.SSEEnabled":                false, // with a key that DynamoDB owns
		"WriteProvisionedThroughputSettings":         nil,
		"WriteOnDemandThroughputSettings":            nil,
		"Replicas.#0.ReadOnDemandThroughputSettings": nil,
		"Replicas.#0.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled": true,
		"GlobalSecondaryIndexes.#0.Projection.ProjectionType":                     "ALL",
	})
}

// The provisioned capacity of the table and of its index comes from the settings.
func TestProvisionedCapacityIsThatOfTheSettings(t *testing.T) {
	t.Parallel()
	s := stackOf(t, "every setting, new")
	r := s.named(t, "AWS::DynamoDB::GlobalTable", "TableName", "plain-shards")
	s.same(t, "table", r, map[string]any{"BillingMode": "PROVISIONED"})
	const index, replica = "GlobalSecondaryIndexes.#0.", "Replicas.#0."
	for path, c := range map[string]config.Capacity{
		"WriteProvisionedThroughputSettings.WriteCapacity":                 {Min: 20, Max: 2000, Target: 60},
		index + "WriteProvisionedThroughputSettings.WriteCapacity":         {Min: 2, Max: 500, Target: 65},
		replica + "ReadProvisionedThroughputSettings.ReadCapacity":         {Min: 10, Max: 1000, Target: 50},
		replica + index + "ReadProvisionedThroughputSettings.ReadCapacity": {Min: 3, Max: 400, Target: 55},
	} {
		in := path + "AutoScalingSettings."
		s.same(t, path, r, map[string]any{
			in + "MinCapacity": float64(c.Min), in + "MaxCapacity": float64(c.Max), in + "SeedCapacity": float64(c.Min),
			in + "TargetTrackingScalingPolicyConfiguration.TargetValue": float64(c.Target),
		})
	}
	plain := stackOf(t, plainStack)
	plain.same(t, "on demand", plain.named(t, "AWS::DynamoDB::GlobalTable", "TableName", "plain-shards"), map[string]any{
		"BillingMode": "PAY_PER_REQUEST", "WriteProvisionedThroughputSettings": nil,
	})
}

// The table that tests create has the same definition as the table of the stack.
func TestTheTableIsTheOneThatTheCodeDefines(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	r := s.named(t, "AWS::DynamoDB::GlobalTable", "TableName", "plain-shards")
	want := dynamodb.Definition("plain-shards")
	for i, k := range want.KeySchema {
		s.same(t, "table", r, map[string]any{
			"KeySchema.#" + string(rune('0'+i)) + ".AttributeName": *k.AttributeName,
			"KeySchema.#" + string(rune('0'+i)) + ".KeyType":       string(k.KeyType),
		})
	}
	if got := len(items(dig(r.Properties, "AttributeDefinitions"))); got != len(want.AttributeDefinitions) {
		t.Errorf("got %d attributes, want %d", got, len(want.AttributeDefinitions))
	}
	if got := len(items(dig(r.Properties, "GlobalSecondaryIndexes"))); got != len(want.GlobalSecondaryIndexes) {
		t.Errorf("got %d indexes, want %d", got, len(want.GlobalSecondaryIndexes))
	}
}

func TestTheBucketIsClosed(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	buckets := s.all("AWS::S3::Bucket")
	if len(buckets) != 1 {
		t.Fatalf("got %d buckets, want 1", len(buckets))
	}
	for _, r := range buckets {
		s.same(t, "bucket", r, map[string]any{
			"BucketName": "plain-${AWS::AccountId}-${AWS::Region}",
			"PublicAccessBlockConfiguration.BlockPublicAcls":                                                   true,
			"PublicAccessBlockConfiguration.BlockPublicPolicy":                                                 true,
			"PublicAccessBlockConfiguration.IgnorePublicAcls":                                                  true,
			"PublicAccessBlockConfiguration.RestrictPublicBuckets":                                             true,
			"OwnershipControls.Rules.#0.ObjectOwnership":                                                       "BucketOwnerEnforced",
			"VersioningConfiguration.Status":                                                                   "Enabled",
			"BucketEncryption.ServerSideEncryptionConfiguration.#0.ServerSideEncryptionByDefault.SSEAlgorithm": "AES256",
		})
	}
}

// Each prefix has a rule that removes delete markers. prune lists flights/ from its start, so each
// marker costs time until it is removed. S3 refuses a rule that has both an expiration in days and
// ExpiredObjectDeleteMarker.
func TestEachPrefixHasItsLifecycle(t *testing.T) {
	t.Parallel()
	type life struct {
		expires, former float64
		markers         bool
	}
	for stack, archived := range map[string]float64{plainStack: 1, fullStack: 14} {
		want := map[string]life{
			"flights/": {15, 1, true}, "archive/": {archived, 1, true}, "dead/": {0, 14, true}, "scheduled/": {0, 14, true},
		}
		s, got := stackOf(t, stack), make(map[string]life)
		bucket := s.named(t, "AWS::S3::Bucket", "BucketName", stack+"-${AWS::AccountId}-${AWS::Region}")
		for _, rule := range items(dig(bucket.Properties, "LifecycleConfiguration", "Rules")) {
			prefix := word(dig(rule, "Prefix"))
			l := got[prefix]
			expires, _ := dig(rule, "ExpirationInDays").(float64)
			former, _ := dig(rule, "NoncurrentVersionExpiration", "NoncurrentDays").(float64)
			markers, _ := dig(rule, "ExpiredObjectDeleteMarker").(bool)
			if expires > 0 && markers {
				t.Errorf("%s: one rule has days and ExpiredObjectDeleteMarker: %v", prefix, rule)
			}
			if status := word(dig(rule, "Status")); status != "Enabled" {
				t.Errorf("%s: a rule is %s", prefix, status)
			}
			l.expires, l.former, l.markers = max(l.expires, expires), max(l.former, former), l.markers || markers
			got[prefix] = l
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", stack, got, want)
		}
	}
}

func TestQueuesKeepWhatTheyAreSent(t *testing.T) {
	t.Parallel()
	const at = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:"
	s, c := stackOf(t, plainStack), deployable(plainStack)
	if got := len(s.all("AWS::SQS::Queue")); got != 3 {
		t.Errorf("got %d queues, want 3", got)
	}
	for name, want := range map[string]map[string]any{
		"plain-search-live": {
			"VisibilityTimeout": 40.0, "MessageRetentionPeriod": 604_800.0,
			"RedrivePolicy.maxReceiveCount":     float64(c.Retry.MaxReceiveCount()),
			"RedrivePolicy.deadLetterTargetArn": "{queue plain-search-dead}",
		},
		"plain-search-bulk": {
			"VisibilityTimeout": 40.0, "MessageRetentionPeriod": 604_800.0,
			"RedrivePolicy.maxReceiveCount":     float64(c.Retry.MaxReceiveCount()),
			"RedrivePolicy.deadLetterTargetArn": "{queue plain-search-dead}",
		},
		"plain-search-dead": {
			"VisibilityTimeout": 180.0, "MessageRetentionPeriod": 1_209_600.0, "RedrivePolicy": nil,
			"RedriveAllowPolicy.redrivePermission":  "byQueue",
			"RedriveAllowPolicy.sourceQueueArns.#0": at + "plain-search-live",
			"RedriveAllowPolicy.sourceQueueArns.#1": at + "plain-search-bulk", "RedriveAllowPolicy.sourceQueueArns.#2": nil,
		},
	} {
		r := s.named(t, "AWS::SQS::Queue", "QueueName", name)
		want["SqsManagedSseEnabled"], want["KmsMasterKeyId"], want["FifoQueue"] = true, nil, nil
		want["MaximumMessageSize"], want["DelaySeconds"] = 1_048_576.0, nil
		s.same(t, name, r, want)
	}
}

func TestACustomersKeyEncryptsEverything(t *testing.T) {
	t.Parallel()
	const key = "arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555"
	s := stackOf(t, fullStack)
	for id, r := range s.all("AWS::SQS::Queue") {
		s.same(t, s.reference(id), r, map[string]any{
			"KmsMasterKeyId": key, "KmsDataKeyReusePeriodSeconds": 3600.0,
			"SqsManagedSseEnabled": nil,
		})
	}
	for id, r := range s.all("AWS::S3::Bucket") {
		const by = "BucketEncryption.ServerSideEncryptionConfiguration.#0."
		s.same(t, s.reference(id), r, map[string]any{
			by + "ServerSideEncryptionByDefault.SSEAlgorithm":   "aws:kms",
			by + "ServerSideEncryptionByDefault.KMSMasterKeyID": key, by + "BucketKeyEnabled": true,
		})
	}
	for id, r := range s.all("AWS::DynamoDB::GlobalTable") {
		s.same(t, s.reference(id), r, map[string]any{
			"SSESpecification.SSEEnabled": true, "SSESpecification.SSEType": "KMS",
			"Replicas.#0.DeletionProtectionEnabled":       true, // Props.Protect
			"Replicas.#0.SSESpecification.KMSMasterKeyId": key,
		})
	}
}

func TestAnEphemeralStackLeavesNothing(t *testing.T) {
	t.Parallel()
	s := stackOf(t, testStack)
	for id, r := range s.Resources {
		if strings.HasPrefix(r.DeletionPolicy, "Retain") {
			t.Errorf("%s is retained", s.reference(id))
		}
	}
	if n := len(s.all("AWS::SQS::QueuePolicy")) + len(s.all("AWS::S3::BucketPolicy")); n > 0 {
		t.Errorf("got %d resource policies: an emulator's endpoint is plain http", n)
	}
}

// A region of another partition (aws-cn, aws-us-gov) has other ARNs: REVIEW W5.
func TestNoPartitionIsWrittenDown(t *testing.T) {
	t.Parallel()
	for id, r := range stackOf(t, plainStack).Resources {
		text, err := json.Marshal(r.Properties)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "arn:aws:") {
			t.Errorf("%s names the partition aws: %s", id, text)
		}
	}
}

// Only resources that can be created again are deleted with the stack. If a first deploy fails, all
// that it created is deleted, so that it can be repeated with the same names: REVIEW W2.
func TestOnlyWhatHoldsStateIsRetained(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	stateful := []string{"AWS::DynamoDB::GlobalTable", "AWS::S3::Bucket", "AWS::SQS::Queue"}
	for id, r := range s.Resources {
		want := slices.Contains(stateful, r.Type)
		if (r.DeletionPolicy == "RetainExceptOnCreate") != want || (r.UpdateReplacePolicy == "Retain") != want {
			t.Errorf("%s: policies are %q and %q, want it retained: %t", s.reference(id), r.DeletionPolicy,
				r.UpdateReplacePolicy, want)
		}
	}
}

// `cdk import` imports the resources that an earlier stack left. They have the same logical ids and
// properties, and each resource has its identifier: REVIEW W1.
func TestWhatOutlivesAStackCanBeImported(t *testing.T) {
	t.Parallel()
	s, plain := stackOf(t, stateStack), stackOf(t, plainStack)
	if len(s.Resources) != 5 || len(s.Outputs) > 0 {
		t.Errorf("got %d resources and %d outputs, want a table, a bucket and three queues alone", len(s.Resources),
			len(s.Outputs))
	}
	for id, r := range s.Resources {
		if r.DeletionPolicy == "" {
			t.Errorf("%s has no deletion policy: an import demands one", id)
		}
		if !reflect.DeepEqual(r.Properties, plain.Resources[id].Properties) {
			t.Errorf("%s: imported as\n%v, deployed as\n%v", id, r.Properties, plain.Resources[id].Properties)
		}
		want := map[string]map[string]string{
			"plain-shards":      {"TableName": "plain-shards"},
			"plain-search-live": {"QueueUrl": "https://sqs.cn-north-1.amazonaws.com.cn/111122223333/plain-search-live"},
			"plain-search-bulk": {"QueueUrl": "https://sqs.cn-north-1.amazonaws.com.cn/111122223333/plain-search-bulk"},
			"plain-search-dead": {"QueueUrl": "https://sqs.cn-north-1.amazonaws.com.cn/111122223333/plain-search-dead"},
			"":                  {"BucketName": "plain-111122223333-cn-north-1"},
		}[word(r.Properties["TableName"])+word(r.Properties["QueueName"])]
		if !maps.Equal(identifiers[id], want) {
			t.Errorf("%s is identified by %v, want %v", id, identifiers[id], want)
		}
	}
}

// A row must outlive every message that could write its deleted document again, and so must a
// flight's manifest.
func TestFlightsOutliveTheirMessages(t *testing.T) {
	t.Parallel()
	for _, setting := range config.Settings() {
		if setting.Name == "queues.retention" && setting.Max >= int64(flightDays)*24*int64(3_600_000_000_000) {
			t.Errorf("a queue may keep a message for %d ns, a flight's objects expire after %d days", setting.Max,
				flightDays)
		}
	}
}
