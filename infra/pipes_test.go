// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/transition"
	"github.com/lullhq/lull/internal/seam/flight"
)

// pipeOf returns the pipe with that name in fullStack.
func pipeOf(t *testing.T, s *template, name string) resource {
	t.Helper()
	for _, r := range s.all("AWS::Pipes::Pipe") {
		if strings.HasSuffix(word(r.Metadata["aws:cdk:path"]), "/Pipe-"+name+"/Pipe") {
			return r
		}
	}
	t.Fatalf("there is no pipe %s", name)
	return resource{}
}

func TestAPipeReadsItsSourceIntoTheQueue(t *testing.T) {
	t.Parallel()
	s := stackOf(t, fullStack)
	const live, bulk, archive = "{queue full-search-live}", "{queue full-search-bulk}", "{queue full-archive-live}"
	for name, tt := range map[string]struct {
		source, target, parameters string
		want                       map[string]any
	}{
		"items": {itemsARN, live, "DynamoDBStreamParameters", map[string]any{
			"StartingPosition": "TRIM_HORIZON", "BatchSize": 10.0, "MaximumBatchingWindowInSeconds": nil,
			"MaximumRecordAgeInSeconds": 72_000.0, "MaximumRetryAttempts": -1.0, "ParallelizationFactor": 1.0,
			"OnPartialBatchItemFailure": "AUTOMATIC_BISECT",
		}},
		"clicks": {clicksARN, bulk, "KinesisStreamParameters", map[string]any{
			"StartingPosition": "LATEST", "BatchSize": 5.0, "MaximumBatchingWindowInSeconds": 1.0,
			"MaximumRecordAgeInSeconds": 3600.0, "MaximumRetryAttempts": 50.0, "ParallelizationFactor": 4.0,
			"OnPartialBatchItemFailure": "AUTOMATIC_BISECT",
		}},
		"pages": {mskARN, live, "ManagedStreamingKafkaParameters", map[string]any{
			"TopicName": "pages", "StartingPosition": "TRIM_HORIZON", "BatchSize": 10.0, "Credentials": nil, "ConsumerGroupID": nil,
		}},
		"secret-pages": {mskARN, live, "ManagedStreamingKafkaParameters", map[string]any{
			"ConsumerGroupID": "lull", "Credentials.SaslScram512Auth": kafkaARN,
		}},
		"own": {"smk://kafka-1.example.org:9094", archive, "SelfManagedKafkaParameters", map[string]any{
			"TopicName": "pages", "AdditionalBootstrapServers.#0": "kafka-2.example.org:9094", "AdditionalBootstrapServers.#1": nil,
			"Credentials.SaslScram256Auth": kafkaARN, "ServerRootCaCertificate": rootARN, "Vpc.Subnets.#0": "subnet-a",
			"Vpc.SecurityGroup.#0": "sg-a",
		}},
		"rabbit": {rabbitARN, live, "RabbitMQBrokerParameters", map[string]any{
			"QueueName": "published", "VirtualHost": "/cms", "Credentials.BasicAuth": brokerSecretARN, "BatchSize": 10.0,
		}},
		"active": {activeARN, live, "ActiveMQBrokerParameters", map[string]any{
			"QueueName": "published", "Credentials.BasicAuth": brokerSecretARN, "BatchSize": 10.0,
		}},
	} {
		pipe := pipeOf(t, s, name)
		parameters := resource{Properties: fields(dig(pipe.Properties, "SourceParameters", tt.parameters))}
		s.same(t, name, parameters, tt.want)
		// SQS splits a batch into messages. With a message group, a queue would block the messages
		// of one document behind those of another.
		s.same(t, name, pipe, map[string]any{
			"Source": tt.source, "Target": tt.target, "TargetParameters": nil, "Name": nil, "Enrichment": nil,
		})
		stream := name == "items" || name == "clicks"
		dead := strings.Replace(strings.Replace(tt.target, "-live", "-dead", 1), "-bulk", "-dead", 1)
		if got := s.text(dig(parameters.Properties, "DeadLetterConfig", "Arn")); stream && got != dead || !stream && got != "" {
			t.Errorf("%s: what it gives up on goes to %q", name, got)
		}
	}
	s.same(t, "filter", pipeOf(t, s, "clicks"), map[string]any{
		"SourceParameters.FilterCriteria.Filters.#0.Pattern": `{"data":{"type":["page"]}}`,
		"SourceParameters.FilterCriteria.Filters.#1":         nil,
	})
}

// An operator notices if a pipe drops a record: by a dead letter, or by an alarm before that.
func TestEveryPipeHasItsAlarms(t *testing.T) {
	t.Parallel()
	s := stackOf(t, fullStack)
	for id, pipe := range s.all("AWS::Pipes::Pipe") {
		name := strings.TrimSuffix(word(pipe.Metadata["aws:cdk:path"]), "/Pipe")
		sink := strings.Split(name, "/")[2][len("Sink-"):]
		name = name[strings.LastIndex(name, "/Pipe-")+len("/Pipe-"):]
		failing := s.named(t, "AWS::CloudWatch::Alarm", "AlarmName", "full-"+sink+"-pipe-failing-"+name)
		for i, metric := range []string{"ExecutionFailed", "ExecutionPartiallyFailed", "ExecutionTimeout"} {
			watched := fields(dig(failing.Properties, "Metrics", i, "MetricStat", "Metric"))
			s.same(t, name, resource{Properties: watched}, map[string]any{
				"Namespace": "AWS/EventBridge/Pipes", "MetricName": metric, "Dimensions.#0.Name": "PipeName",
				"Dimensions.#0.Value": map[string]any{"Ref": id},
			})
		}
		s.same(t, name, failing, map[string]any{"EvaluationPeriods": 2.0, "Threshold": 1.0, "TreatMissingData": "notBreaching"})
	}
	s.same(t, "items", s.named(t, "AWS::CloudWatch::Alarm", "AlarmName", "full-search-pipe-idle-items"), map[string]any{
		"MetricName": "EventCount", "Period": 3600.0, "TreatMissingData": "breaching",
		"ComparisonOperator": "LessThanThreshold",
	})
}

// A pipe that AWS would refuse, or create and never run, is refused by Validate, which names the
// field.
func TestFaultsOfPipesNameTheField(t *testing.T) {
	t.Parallel()
	kafka := func(k Kafka) Pipe { return Pipe{Name: "p", Kafka: &k} }
	rabbit := func(b Broker) Pipe { return Pipe{Name: "p", RabbitMQ: &b} }
	good := []Pipe{
		{Name: "p", DynamoDB: itemsARN},
		{Name: "p", DynamoDB: "${Token[TOKEN.7]}"},
		{Name: "p", Kinesis: clicksARN},
		kafka(Kafka{Cluster: mskARN, Topic: "pages"}), kafka(Kafka{Servers: []string{"a:9092"}, Topic: "pages"}),
		rabbit(Broker{ARN: rabbitARN, Queue: "q", SecretARN: brokerSecretARN}),
	}
	change := func(c func(*Pipe)) Pipe { p := good[0]; c(&p); return p }
	for i, tt := range []struct {
		pipe Pipe
		want string
	}{
		{Pipe{Name: "p"}, ""},
		{Pipe{Name: "p", DynamoDB: itemsARN, Kinesis: clicksARN}, ""},
		{change(func(p *Pipe) { p.Name = "" }), ".Name"},
		{change(func(p *Pipe) { p.Name = "Items" }), ".Name"},
		{change(func(p *Pipe) { p.DynamoDB = "arn:aws:dynamodb:eu-west-1:111122223333:table/items" }), ".DynamoDB"},
		{Pipe{Name: "p", Kinesis: itemsARN}, ".Kinesis"},
		{change(func(p *Pipe) { p.Batch = 11 }), ".Batch"},
		{change(func(p *Pipe) { p.Window = 301 * time.Second }), ".Window"},
		{change(func(p *Pipe) { p.From = "now" }), ".From"},
		{change(func(p *Pipe) { p.MaxAge = time.Second }), ".MaxAge"},
		{change(func(p *Pipe) { p.Retries = -1 }), ".Retries"},
		{change(func(p *Pipe) { p.Parallel = 11 }), ".Parallel"},
		{change(func(p *Pipe) { p.Idle = time.Minute }), ".Idle"},
		{change(func(p *Pipe) { p.Idle = 25 * time.Hour }), ".Idle"},
		{change(func(p *Pipe) { p.Filters = []string{"[]"} }), ".Filters"},
		{change(func(p *Pipe) { p.Filters = strings.Fields(strings.Repeat(`{"a":[1]} `, 6)) }), ".Filters"},
		{kafka(Kafka{Topic: "pages"}), ".Kafka"},
		{kafka(Kafka{Cluster: mskARN, Servers: []string{"a:9092"}, Topic: "pages"}), ".Kafka"},
		{kafka(Kafka{Cluster: mskARN}), ".Kafka.Topic"},
		{kafka(Kafka{Cluster: itemsARN, Topic: "pages"}), ".Kafka.Cluster"},
		{kafka(Kafka{Cluster: mskARN, Topic: "pages", SecretARN: kafkaARN}), ".Kafka.Login"},
		{kafka(Kafka{Cluster: mskARN, Topic: "pages", SecretARN: kafkaARN, Login: Plain}), ".Kafka.Login"},
		{kafka(Kafka{Cluster: mskARN, Topic: "pages", SecretARN: "kafka", Login: SCRAM512}), ".Kafka.SecretARN"},
		{kafka(Kafka{Cluster: mskARN, Topic: "pages", Vpc: &Vpc{}}), ".Kafka"},
		{kafka(Kafka{Servers: []string{"a"}, Topic: "pages"}), ".Kafka.Servers"},
		{kafka(Kafka{Servers: strings.Fields("a:1 b:1 c:1 d:1"), Topic: "pages"}), ".Kafka.Servers"},
		{kafka(Kafka{Servers: []string{"a:1"}, Topic: "pages", Vpc: &Vpc{SubnetIDs: []string{"subnet-a"}}}), ".Kafka.Vpc"},
		{kafka(Kafka{Servers: []string{"a:1"}, Topic: "pages", Group: "a b"}), ".Kafka.Group"},
		{kafka(Kafka{Servers: []string{"a:1"}, Topic: "pages", RootSecretARN: "x"}), ".Kafka.RootSecretARN"},
		{rabbit(Broker{Queue: "q", SecretARN: brokerSecretARN}), ".RabbitMQ.ARN"},
		{rabbit(Broker{ARN: rabbitARN, SecretARN: brokerSecretARN}), ".RabbitMQ.Queue"},
		{rabbit(Broker{ARN: rabbitARN, Queue: "q"}), ".RabbitMQ.SecretARN"},
		{Pipe{Name: "p", ActiveMQ: &Broker{ARN: activeARN, Queue: "q", SecretARN: brokerSecretARN, VirtualHost: "/"}}, ".ActiveMQ.VirtualHost"},
		{Pipe{Name: "p", From: Newest, RabbitMQ: good[5].RabbitMQ}, ".From"},
		{Pipe{Name: "p", MaxAge: time.Hour, RabbitMQ: good[5].RabbitMQ}, ""},
	} {
		p := &Props{Config: deployable("lull"), AssetDir: builtPrograms(t), Upstreams: []Upstream{{Pipe: &tt.pipe}}}
		faults := Faults(p.Validate())
		if len(faults) == 0 || faults[0].Setting != "Upstreams[0].Pipe"+tt.want || faults[0].Fix == "" {
			t.Errorf("%d: got %v, want a fault of Upstreams[0].Pipe%s", i, faults, tt.want)
		}
	}
	for i, pipe := range good {
		p := &Props{Config: deployable("lull"), AssetDir: builtPrograms(t), Upstreams: []Upstream{{Pipe: &pipe}}}
		if err := p.Validate(); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	twice := &Props{Config: deployable("lull"), AssetDir: builtPrograms(t), Upstreams: []Upstream{
		{Pipe: &good[0]}, {Lane: flight.Bulk, Pipe: &good[2]},
	}}
	if got := fmt.Sprint(Faults(twice.Validate())); !strings.Contains(got, "Upstreams[1].Pipe.Name") {
		t.Errorf("two pipes of one name: got %s", got)
	}
}

// AWS replaces a pipe if its topic changes, according to the schema of SourceParameters. Pipes have
// no fixed name, so the new pipe can be created before the old pipe is deleted.
func TestAPipeThatReadsSomethingElseIsReplaced(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a pipe", "other pipe"} {
		s := stackOf(t, name)
		for _, r := range s.all("AWS::Pipes::Pipe") {
			s.same(t, name, r, map[string]any{"Name": nil})
		}
	}
	did := deploys(t, "a pipe", "other pipe")
	if len(did[transition.Removed])+len(did[transition.Created]) > 0 {
		t.Errorf("got %v, want nothing but the pipe to change", did)
	}
}
