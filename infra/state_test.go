package infra

import (
	"slices"
	"testing"

	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/config"
)

// What emulators drop, and what nobody sees missing before it is needed.

func TestTheTableSurvivesItsStackAndMistakes(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	r := s.named(t, "AWS::DynamoDB::GlobalTable", "TableName", "plain-shards")
	same(t, "table", r, map[string]any{
		"BillingMode":                                "PAY_PER_REQUEST",
		"TimeToLiveSpecification.AttributeName":      dynamodb.TTLAttribute,
		"TimeToLiveSpecification.Enabled":            true,
		"Replicas.#0.DeletionProtectionEnabled":      true,
		"Replicas.#1":                                nil,
		"KeySchema.#0.AttributeName":                 dynamodb.PartitionKey,
		"KeySchema.#1":                               nil,
		"GlobalSecondaryIndexes.#0.IndexName":        dynamodb.IndexName,
		"GlobalSecondaryIndexes.#1":                  nil,
		"SSESpecification.SSEEnabled":                false, // with a key that DynamoDB owns
		"WriteProvisionedThroughputSettings":         nil,
		"WriteOnDemandThroughputSettings":            nil,
		"Replicas.#0.ReadOnDemandThroughputSettings": nil,
		"Replicas.#0.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled": true,
		"GlobalSecondaryIndexes.#0.KeySchema.#0.AttributeName":                    dynamodb.IndexPartition,
		"GlobalSecondaryIndexes.#0.KeySchema.#1.AttributeName":                    dynamodb.IndexSort,
		"GlobalSecondaryIndexes.#0.Projection.ProjectionType":                     "ALL",
	})
	if r.DeletionPolicy != "Retain" || r.UpdateReplacePolicy != "Retain" {
		t.Errorf("policies are %s and %s, want Retain", r.DeletionPolicy, r.UpdateReplacePolicy)
	}
}

// The table of the tests and the table of the stack are one.
func TestTheTableIsTheOneThatTheCodeDefines(t *testing.T) {
	t.Parallel()
	r := stackOf(t, plainStack).named(t, "AWS::DynamoDB::GlobalTable", "TableName", "plain-shards")
	want := dynamodb.Definition("plain-shards")
	for i, k := range want.KeySchema {
		same(t, "table", r, map[string]any{
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

func TestTheBucketIsClosedAndOnlyFlightsExpire(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	buckets := s.all("AWS::S3::Bucket")
	if len(buckets) != 1 {
		t.Fatalf("got %d buckets, want 1", len(buckets))
	}
	for _, r := range buckets {
		if got, want := s.text(r.Properties["BucketName"]), "plain-${AWS::AccountId}-${AWS::Region}"; got != want {
			t.Errorf("bucket is called %s, want %s", got, want)
		}
		same(t, "bucket", r, map[string]any{
			"PublicAccessBlockConfiguration.BlockPublicAcls":                                                   true,
			"PublicAccessBlockConfiguration.BlockPublicPolicy":                                                 true,
			"PublicAccessBlockConfiguration.IgnorePublicAcls":                                                  true,
			"PublicAccessBlockConfiguration.RestrictPublicBuckets":                                             true,
			"OwnershipControls.Rules.#0.ObjectOwnership":                                                       "BucketOwnerEnforced",
			"LifecycleConfiguration.Rules.#0.Prefix":                                                           "flights/",
			"LifecycleConfiguration.Rules.#0.ExpirationInDays":                                                 15.0,
			"LifecycleConfiguration.Rules.#0.Status":                                                           "Enabled",
			"LifecycleConfiguration.Rules.#1":                                                                  nil,
			"BucketEncryption.ServerSideEncryptionConfiguration.#0.ServerSideEncryptionByDefault.SSEAlgorithm": "AES256",
		})
		if r.DeletionPolicy != "Retain" || r.UpdateReplacePolicy != "Retain" {
			t.Errorf("policies are %s and %s, want Retain", r.DeletionPolicy, r.UpdateReplacePolicy)
		}
	}
}

func TestQueuesKeepWhatTheyAreSent(t *testing.T) {
	t.Parallel()
	s, c := stackOf(t, plainStack), deployable(plainStack)
	if got := len(s.all("AWS::SQS::Queue")); got != 3 {
		t.Errorf("got %d queues, want 3", got)
	}
	for name, want := range map[string]map[string]any{
		"plain-search-live": {
			"VisibilityTimeout": 40.0, "MessageRetentionPeriod": 604_800.0,
			"RedrivePolicy.maxReceiveCount": float64(c.MaxReceiveCount()),
		},
		"plain-search-bulk": {
			"VisibilityTimeout": 40.0, "MessageRetentionPeriod": 604_800.0,
			"RedrivePolicy.maxReceiveCount": float64(c.MaxReceiveCount()),
		},
		"plain-search-dead": {"VisibilityTimeout": 180.0, "MessageRetentionPeriod": 1_209_600.0, "RedrivePolicy": nil},
	} {
		r := s.named(t, "AWS::SQS::Queue", "QueueName", name)
		want["SqsManagedSseEnabled"], want["KmsMasterKeyId"], want["FifoQueue"] = true, nil, nil
		want["MaximumMessageSize"], want["DelaySeconds"] = 1_048_576.0, nil
		same(t, name, r, want)
		if name != "plain-search-dead" {
			if got, want := s.text(dig(r.Properties, "RedrivePolicy", "deadLetterTargetArn")),
				"{queue plain-search-dead}"; got != want {
				t.Errorf("%s: dead letters go to %s, want %s", name, got, want)
			}
		}
		if r.DeletionPolicy != "Retain" || r.UpdateReplacePolicy != "Retain" {
			t.Errorf("%s: policies are %s and %s, want Retain", name, r.DeletionPolicy, r.UpdateReplacePolicy)
		}
	}
}

func TestNothingIsReachedWithoutTLS(t *testing.T) {
	t.Parallel()
	for _, stack := range []string{plainStack, fullStack} {
		s := stackOf(t, stack)
		closed := make(map[string]bool)
		for kind, target := range map[string]string{
			"AWS::SQS::QueuePolicy": "Queues",
			"AWS::S3::BucketPolicy": "Bucket",
		} {
			for _, r := range s.all(kind) {
				for _, st := range statements(r.Properties["PolicyDocument"]) {
					if st["Effect"] == "Deny" && dig(st, "Condition", "Bool", "aws:SecureTransport") == "false" &&
						dig(st, "Principal", "AWS") == "*" {
						for _, name := range s.texts(r.Properties[target]) {
							closed[name] = true
						}
					}
				}
			}
		}
		for _, kind := range []string{"AWS::SQS::Queue", "AWS::S3::Bucket"} {
			for id := range s.all(kind) {
				if !closed[s.reference(id)] {
					t.Errorf("%s: %s has no policy that denies plain HTTP", stack, s.reference(id))
				}
			}
		}
	}
}

func TestACustomersKeyEncryptsEverything(t *testing.T) {
	t.Parallel()
	const key = "arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555"
	s := stackOf(t, fullStack)
	for id, r := range s.all("AWS::SQS::Queue") {
		same(t, s.reference(id), r, map[string]any{
			"KmsMasterKeyId": key, "KmsDataKeyReusePeriodSeconds": 3600.0,
			"SqsManagedSseEnabled": nil,
		})
	}
	for id, r := range s.all("AWS::S3::Bucket") {
		const by = "BucketEncryption.ServerSideEncryptionConfiguration.#0."
		same(t, s.reference(id), r, map[string]any{
			by + "ServerSideEncryptionByDefault.SSEAlgorithm":   "aws:kms",
			by + "ServerSideEncryptionByDefault.KMSMasterKeyID": key, by + "BucketKeyEnabled": true,
		})
	}
	for id, r := range s.all("AWS::DynamoDB::GlobalTable") {
		same(t, s.reference(id), r, map[string]any{
			"SSESpecification.SSEEnabled": true, "SSESpecification.SSEType": "KMS",
			"Replicas.#0.SSESpecification.KMSMasterKeyId": key,
		})
	}
}

func TestAnEphemeralStackLeavesNothing(t *testing.T) {
	t.Parallel()
	s := stackOf(t, testStack)
	for id, r := range s.Resources {
		if r.DeletionPolicy == "Retain" {
			t.Errorf("%s is retained", s.reference(id))
		}
	}
	r := s.named(t, "AWS::DynamoDB::GlobalTable", "TableName", "ephemeral-shards")
	same(t, "table", r, map[string]any{"Replicas.#0.DeletionProtectionEnabled": false})
	if n := len(s.all("AWS::SQS::QueuePolicy")) + len(s.all("AWS::S3::BucketPolicy")); n > 0 {
		t.Errorf("got %d resource policies: an emulator's endpoint is plain http", n)
	}
}

// Only what can be made again goes with the stack.
func TestOnlyWhatHoldsStateIsRetained(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	var kept []string
	for _, r := range s.Resources {
		if r.DeletionPolicy == "Retain" && !slices.Contains(kept, r.Type) {
			kept = append(kept, r.Type)
		}
	}
	slices.Sort(kept)
	if want := []string{"AWS::DynamoDB::GlobalTable", "AWS::S3::Bucket", "AWS::SQS::Queue"}; !slices.Equal(kept, want) {
		t.Errorf("retained: %v, want %v", kept, want)
	}
}

// A row must outlive every message that could resurrect its document, and so must a flight's
// manifest.
func TestFlightsOutliveTheirMessages(t *testing.T) {
	t.Parallel()
	for _, setting := range config.Settings() {
		if setting.Name == "queues.retention" && setting.Max >= int64(flightDays)*24*int64(3_600_000_000_000) {
			t.Errorf("a queue may keep a message for %d ns, a flight's objects expire after %d days", setting.Max,
				flightDays)
		}
	}
}
