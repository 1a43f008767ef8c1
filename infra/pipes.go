// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"cmp"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awspipes"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/seam/flight"
)

// Pipe reads a stream, topic or queue with EventBridge Pipes. Exactly one of DynamoDB, Kinesis,
// Kafka, RabbitMQ and ActiveMQ is set. Each record becomes one message, in the form that AWS
// documents and docs/events.md names. The role of the pipe has the rights that AWS documents for
// the source.
type Pipe struct {
	// Name identifies the pipe within its sink: 1 to 20 of a-z, 0-9 and -. The names of the pipe's
	// alarms contain Name, but CloudFormation chooses the name of the pipe. If you change Name,
	// CloudFormation creates another pipe.
	Name string

	// DynamoDB is the ARN of a table's stream, which must hold new images.
	DynamoDB string
	// Kinesis is the ARN of a stream, or of a consumer of a stream.
	Kinesis string
	// Kafka is a topic in Amazon MSK, or in a cluster that you run.
	Kafka *Kafka
	// RabbitMQ and ActiveMQ are queues of Amazon MQ.
	RabbitMQ, ActiveMQ *Broker

	// Filters are event patterns, each a JSON object. The pipe drops a record that matches no
	// pattern, and the record is lost. By default the pipe sends every record.
	Filters []string
	// Batch is how many records a request to the queue has at most, 1 to 10. Default 10.
	Batch int
	// Window is how long the pipe may collect a batch, 0 to 5 minutes. Default 0. A window delays
	// every document by up to this time.
	Window time.Duration
	// From is where a new pipe starts to read. The default is Oldest, which means the oldest record
	// that the stream or topic still has. From does not apply to the queue of a broker.
	From Beginning

	// Retries is how often a pipe retries records of DynamoDB or Kinesis that the queue did not
	// accept, 1 to 10,000. With the default 0, the pipe retries until MaxAge.
	Retries int
	// MaxAge is the age of a record at which the pipe stops retrying it, 1 minute to 7 days.
	// Default 20 hours, because a stream keeps records for 24 hours by default. For each batch that
	// the pipe skips, a dead letter says where in the stream the records are.
	MaxAge time.Duration
	// Parallel is how many batches of one shard of DynamoDB or Kinesis are read at once, 1 to 10.
	// Default 1.
	Parallel int

	// Idle is how long the pipe may send nothing before an alarm goes off, 5 minutes to 1 day, in
	// whole minutes. With the default 0, there is no such alarm. No other alarm shows a pipe that
	// AWS has stopped, or that cannot read its source.
	Idle time.Duration
}

// Beginning is where a pipe starts to read.
type Beginning string

// The values of Beginning: the oldest record of the source, or only new records.
const (
	Oldest Beginning = "TRIM_HORIZON"
	Newest Beginning = "LATEST"
)

// Kafka is a topic of Kafka. Set either Cluster or Servers.
type Kafka struct {
	// Cluster is the ARN of a cluster of Amazon MSK. Without SecretARN the pipe logs in with its
	// role (IAM).
	Cluster string
	// Servers are the brokers of a cluster that you run, each host:port; at most three.
	Servers []string
	Topic   string
	// Group is the consumer group. By default the pipe creates its own group.
	Group string

	// SecretARN is a secret in Secrets Manager with the credentials. Login says how the pipe uses
	// the credentials. A cluster of MSK accepts SCRAM512 and ClientCertificate.
	SecretARN string
	Login     Login
	// RootSecretARN is a secret with the certificate of the authority that signed the certificates
	// of Servers. It is needed if the authority is not a public one.
	RootSecretARN string
	// Vpc is the network from which the pipe reaches Servers. The default is the internet. A
	// cluster of MSK has its own network.
	Vpc *Vpc
}

// Login is how a pipe logs in to Kafka.
type Login string

// The values of Login.
const (
	SCRAM512          Login = "scram512"
	SCRAM256          Login = "scram256"
	Plain             Login = "plain"
	ClientCertificate Login = "certificate"
)

// Broker is a queue of Amazon MQ.
type Broker struct {
	ARN   string // the ARN of the broker
	Queue string
	// VirtualHost is the virtual host of RabbitMQ. Default "/".
	VirtualHost string
	// SecretARN is a secret of Secrets Manager with username and password.
	SecretARN string
}

const (
	// maxPipeBatch is how many messages a request to SQS can have, and so the largest batch of a
	// pipe.
	maxPipeBatch = 10
	// pipeMaxAge leaves four hours to read the skipped records from the stream again.
	pipeMaxAge = 20 * time.Hour
)

// newPipe makes the pipe of an upstream. A pipe of a stream sends a report about the records that
// it skips to the dead-letter queue. The function dlq makes a dead letter of the report, which
// names the skipped records.
func (s *Sink) newPipe(p *Pipe, lane flight.Lane) {
	queue := s.Queues.Of(lane)
	scope := constructs.NewConstruct(s.scope, jsii.String("Pipe-"+p.Name))
	target := []awssqs.IQueue{queue}
	if p.isStream() {
		target = append(target, s.Queues.Dead)
	}
	rights := append(p.rights(), right{sid: "Send", actions: []string{"sqs:SendMessage"}, resources: arns(target...)})
	rights = append(rights, s.lull.key("UseKey", seals, "sqs")...)
	if service := p.encrypted(); service != "" {
		rights = append(rights, s.otherKeys("DecryptSource", service))
	}
	made := piping{
		says: "lull: brings " + p.Name + " to " + s.names().Queue(s.Name, lane), rights: rights,
		source: p.source(), from: p.parameters(*s.Queues.Dead.QueueArn()), filters: p.Filters,
		target: *queue.QueueArn(),
	}.create(scope, "")
	for _, a := range alarms.OfPipe(*made.Ref(), p.Idle) {
		s.lull.alarm(scope, s.subject()+", pipe "+p.Name, s.names().Alarm(s.Name, a.Kind)+"-"+p.Name, a)
	}
}

// piping is the definition of a pipe, for any source and target.
type piping struct {
	says, source, target string
	name                 *string // nil if CloudFormation chooses the name
	rights               []right
	filters              []string
	from                 *awspipes.CfnPipe_PipeSourceParametersProperty
	enrichment           *string
	to                   *awspipes.CfnPipe_PipeTargetParametersProperty
}

// create creates the pipe and its role. The ids of both begin with prefix.
func (p piping) create(scope constructs.Construct, prefix string) awspipes.CfnPipe {
	role := newRole(scope, prefix+"PipeRole", p.says, service("pipes.amazonaws.com"), p.rights)
	if len(p.filters) > 0 {
		filters := every(p.filters, func(pattern string) any {
			return &awspipes.CfnPipe_FilterProperty{Pattern: &pattern}
		})
		p.from.FilterCriteria = &awspipes.CfnPipe_FilterCriteriaProperty{Filters: filters}
	}
	return awspipes.NewCfnPipe(scope, jsii.String(prefix+"Pipe"), &awspipes.CfnPipeProps{
		Name: p.name, Description: &p.says, RoleArn: role.RoleArn(), Source: &p.source, SourceParameters: p.from,
		Enrichment: p.enrichment, Target: &p.target, TargetParameters: p.to,
	})
}

// isStream reports whether the source has shards and sequence numbers. Only a pipe of such a source
// can skip records, and so only such a pipe may have a dead-letter queue.
func (p *Pipe) isStream() bool { return p.DynamoDB != "" || p.Kinesis != "" }

// source returns the identifier of the source in CloudFormation.
func (p *Pipe) source() string {
	switch {
	case p.Kafka != nil && p.Kafka.Cluster != "":
		return p.Kafka.Cluster
	case p.Kafka != nil:
		return "smk://" + p.Kafka.Servers[0]
	case p.broker() != nil:
		return p.broker().ARN
	}
	return p.DynamoDB + p.Kinesis
}

// broker is the broker that has the queue, or nil if the source is not a broker.
func (p *Pipe) broker() *Broker { return cmp.Or(p.RabbitMQ, p.ActiveMQ) }

// encrypted returns the AWS service from which the pipe reads data that a key of the customer may
// encrypt. It returns "" if there is no such service.
func (p *Pipe) encrypted() string {
	switch {
	case p.DynamoDB != "":
		return "dynamodb"
	case p.Kinesis != "":
		return "kinesis"
	case len(p.secrets()) > 0:
		return "secretsmanager"
	}
	return ""
}

// secrets lists the secrets that the pipe reads to log in.
func (p *Pipe) secrets() []string {
	switch {
	case p.Kafka != nil:
		return notEmpty([]string{p.Kafka.SecretARN, p.Kafka.RootSecretARN})
	case p.broker() != nil:
		return []string{p.broker().SecretARN}
	}
	return nil
}

func (p *Pipe) batch() *float64 {
	return jsii.Number(cmp.Or(p.Batch, maxPipeBatch))
}

func (p *Pipe) window() *float64 {
	if p.Window == 0 {
		return nil
	}
	return jsii.Number(p.Window.Seconds())
}

func (p *Pipe) from() *string { return jsii.String(string(cmp.Or(p.From, Oldest))) }

func (p *Pipe) maxAge() *float64 { return jsii.Number(cmp.Or(p.MaxAge, pipeMaxAge).Seconds()) }

// retries returns the number of retries, where -1 means that there is no limit.
func (p *Pipe) retries() *float64 { return jsii.Number(cmp.Or(p.Retries, -1)) }

// parameters are CloudFormation's parameters of the source.
func (p *Pipe) parameters(dead string) *awspipes.CfnPipe_PipeSourceParametersProperty {
	var all awspipes.CfnPipe_PipeSourceParametersProperty
	letters := &awspipes.CfnPipe_DeadLetterConfigProperty{Arn: &dead}
	halves := jsii.String("AUTOMATIC_BISECT") // splits a failed batch until only the refused record fails
	switch {
	case p.DynamoDB != "":
		all.DynamoDbStreamParameters = &awspipes.CfnPipe_PipeSourceDynamoDBStreamParametersProperty{
			StartingPosition: p.from(), BatchSize: p.batch(), MaximumBatchingWindowInSeconds: p.window(),
			MaximumRecordAgeInSeconds: p.maxAge(), MaximumRetryAttempts: p.retries(), OnPartialBatchItemFailure: halves,
			ParallelizationFactor: jsii.Number(cmp.Or(p.Parallel, 1)), DeadLetterConfig: letters,
		}
	case p.Kinesis != "":
		all.KinesisStreamParameters = &awspipes.CfnPipe_PipeSourceKinesisStreamParametersProperty{
			StartingPosition: p.from(), BatchSize: p.batch(), MaximumBatchingWindowInSeconds: p.window(),
			MaximumRecordAgeInSeconds: p.maxAge(), MaximumRetryAttempts: p.retries(), OnPartialBatchItemFailure: halves,
			ParallelizationFactor: jsii.Number(cmp.Or(p.Parallel, 1)), DeadLetterConfig: letters,
		}
	case p.Kafka != nil && p.Kafka.Cluster != "":
		all.ManagedStreamingKafkaParameters = p.managed()
	case p.Kafka != nil:
		all.SelfManagedKafkaParameters = p.selfManaged()
	case p.RabbitMQ != nil:
		all.RabbitMqBrokerParameters = &awspipes.CfnPipe_PipeSourceRabbitMQBrokerParametersProperty{
			QueueName: &p.RabbitMQ.Queue, VirtualHost: orNil(p.RabbitMQ.VirtualHost),
			Credentials: p.RabbitMQ.credentials(),
			BatchSize:   p.batch(), MaximumBatchingWindowInSeconds: p.window(),
		}
	case p.ActiveMQ != nil:
		all.ActiveMqBrokerParameters = &awspipes.CfnPipe_PipeSourceActiveMQBrokerParametersProperty{
			QueueName: &p.ActiveMQ.Queue, Credentials: p.ActiveMQ.credentials(), BatchSize: p.batch(),
			MaximumBatchingWindowInSeconds: p.window(),
		}
	}
	return &all
}

func (b *Broker) credentials() *awspipes.CfnPipe_MQBrokerAccessCredentialsProperty {
	return &awspipes.CfnPipe_MQBrokerAccessCredentialsProperty{BasicAuth: &b.SecretARN}
}

func (p *Pipe) managed() *awspipes.CfnPipe_PipeSourceManagedStreamingKafkaParametersProperty {
	k := p.Kafka
	all := &awspipes.CfnPipe_PipeSourceManagedStreamingKafkaParametersProperty{
		TopicName: &k.Topic, ConsumerGroupId: orNil(k.Group), StartingPosition: p.from(), BatchSize: p.batch(),
		MaximumBatchingWindowInSeconds: p.window(),
	}
	switch k.Login {
	case SCRAM512:
		all.Credentials = &awspipes.CfnPipe_MSKAccessCredentialsProperty{SaslScram512Auth: &k.SecretARN}
	case ClientCertificate:
		all.Credentials = &awspipes.CfnPipe_MSKAccessCredentialsProperty{ClientCertificateTlsAuth: &k.SecretARN}
	case SCRAM256, Plain: // Validate refuses these
	}
	return all
}

func (p *Pipe) selfManaged() *awspipes.CfnPipe_PipeSourceSelfManagedKafkaParametersProperty {
	k := p.Kafka
	all := &awspipes.CfnPipe_PipeSourceSelfManagedKafkaParametersProperty{
		TopicName: &k.Topic, ConsumerGroupId: orNil(k.Group), StartingPosition: p.from(), BatchSize: p.batch(),
		MaximumBatchingWindowInSeconds: p.window(), ServerRootCaCertificate: orNil(k.RootSecretARN),
	}
	if len(k.Servers) > 1 {
		all.AdditionalBootstrapServers = jsii.Strings(k.Servers[1:]...)
	}
	if k.Vpc != nil {
		all.Vpc = &awspipes.CfnPipe_SelfManagedKafkaAccessConfigurationVpcProperty{
			Subnets: jsii.Strings(k.Vpc.SubnetIDs...), SecurityGroup: jsii.Strings(k.Vpc.SecurityGroupIDs...),
		}
	}
	if k.SecretARN != "" {
		c := &awspipes.CfnPipe_SelfManagedKafkaAccessConfigurationCredentialsProperty{}
		switch k.Login {
		case SCRAM512:
			c.SaslScram512Auth = &k.SecretARN
		case SCRAM256:
			c.SaslScram256Auth = &k.SecretARN
		case Plain:
			c.BasicAuth = &k.SecretARN
		case ClientCertificate:
			c.ClientCertificateTlsAuth = &k.SecretARN
		}
		all.Credentials = c
	}
	return all
}

// orNil returns a text for CDK, or nil if the text is empty.
func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
