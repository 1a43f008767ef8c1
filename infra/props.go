// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"cmp"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/flight"
	_ "github.com/lullhq/lull/sink/builtin"
	_ "github.com/lullhq/lull/source/builtin"
)

// Props configures Lull. Config is required, and either AssetDir or Release. Every other field may
// be its zero value.
type Props struct {
	// Config are the settings, as LoadSettings reads them.
	Config *Settings
	// AssetDir is the folder with the programs, as `make build` and BuildFunctions write them:
	// receive/bootstrap, prune/bootstrap, dlq/bootstrap, and index/KIND/bootstrap for each kind of
	// sink that the settings name. If you link custom kinds, build one program index/bootstrap that
	// links all of them.
	AssetDir string
	// Release says where to download the functions if AssetDir is empty. Default: the release that
	// the running program belongs to.
	Release Release
	// Architecture is the instruction set of the functions. Default ARM64, which costs a fifth
	// less.
	Architecture Architecture

	// Upstreams says who may send, and to which queue. If it is empty, only principals that have
	// sqs:SendMessage by their own policies can send.
	Upstreams []Upstream
	// SinkARNs are the ARNs of sinks with auth.kind sigv4, by the sink's name. A sink needs an
	// entry if its URL does not show which domain or collection it is.
	SinkARNs map[string]string
	// Vpc is the network that index runs in. Default nil: index is not in a VPC.
	Vpc *Vpc
	// Key encrypts queues, table and bucket. Default nil: AWS owned keys. The policy of an imported
	// key must allow its use by the services of the upstreams and by the roles of this account. Key
	// needs a stack with an environment (account and region).
	Key awskms.IKey

	// ReadKeyARNs are the ARNs of other KMS keys that index and pipes need for reading. Such keys
	// encrypt the secrets of sinks (auth.secretARN) and of pipes, the buckets of `payload.allow`,
	// and the streams of pipes. The list is empty by default, if AWS manages the keys of this data.
	ReadKeyARNs []string

	// Operators may assume the roles of the command line. Default: the principals that the
	// account's own policies allow to do so.
	Operators awsiam.IPrincipal
	// CommitBus receives an event for each commit, if the settings have commitFeed. Default: the
	// account's default bus.
	CommitBus awsevents.IEventBus
	// FeedParallel is how many batches of one shard the commit feed's pipe reads at once, 1 to 10.
	// The commits of one document stay in their order. Default 1.
	FeedParallel int
	// AlarmTopic gets a message when an alarm goes off and when it ends. With the default nil,
	// alarms are only visible in CloudWatch.
	AlarmTopic awssns.ITopic
	// TicketTopic gets the alarms that can wait for the next working day, in place of AlarmTopic.
	// docs/runbook says which these are. With the default nil, AlarmTopic gets them.
	TicketTopic awssns.ITopic
	// Thresholds replace the thresholds of alarms. The key is the alarm's name without stack and
	// sink, such as freshness or live-age. docs/runbook says the unit of each threshold. The
	// defaults follow from the promises of the design.
	Thresholds map[string]float64
	// IndexConcurrency is the most invocations of index at once, for each sink. This concurrency is
	// reserved, so that index does not use the concurrency of the account's other functions. With
	// the default 0, only the account's limit applies.
	IndexConcurrency int
	// Rollout says how a deploy replaces the code of the functions. A rollout that shifts the
	// invocations step by step ends if an alarm of the sink goes off, and the deploy is rolled
	// back. It also keeps the versions of earlier deploys. Default AtOnce.
	Rollout Rollout
	// Warm is how many reads and writes a second the table can serve without scaling up first. The
	// default zero means the throughput of a new table, about 12,000 read and 4,000 write units.
	Warm Throughput
	// LogLevel is DEBUG, INFO, WARN or ERROR. Default INFO. Metrics do not depend on it.
	LogLevel string
	// LogRetention is how long logs are kept. Default one month.
	LogRetention awslogs.RetentionDays

	// Protect prevents the deletion of the table; `infra/cmd` also prevents the deletion of the
	// stack. Set it after the first deploy succeeded: CloudFormation cannot roll back a failed
	// first deploy whose stack or table is protected. Default false. Even without Protect, deleting
	// the stack keeps the table, the bucket and the queues.
	Protect bool
	// StateOnly builds only the table, the bucket and the queues. `cdk import` can take these from
	// an earlier stack into a new one. Import them, then deploy without StateOnly.
	StateOnly bool

	// Ephemeral is for tests. All resources are deleted with the stack. Programs of another
	// architecture are accepted, because an emulator runs programs of the host's architecture.
	// Never set Ephemeral if the documents matter.
	Ephemeral bool
	// PlainHTTP leaves out the policies that demand TLS, for an emulator that enforces IAM and has
	// an http endpoint. It needs Ephemeral.
	PlainHTTP bool

	fetched map[names.Program][]byte // the programs of the release, which Validate has downloaded
	// template returns the code of each function, for the template of a release. For such a
	// template, the settings are in the environment, and nothing is staged. Otherwise, template is
	// nil.
	template func(names.Program) awslambda.Code
}

// Release is a release of lull. The functions of the release are downloaded into the user's cache
// folder, so Go is not needed. A zip is refused if its SHA-256 differs from the release's list.
type Release struct {
	// Version is a version such as v0.1.0.
	Version string
	// Sum is the SHA-256 of the release's file SHA256SUMS, in hexadecimal, as the release's page
	// shows it. A program of the same release does not need it.
	Sum string
	// URL is the folder of all releases, with a folder for each version: https://HOST/PATH, or
	// file:///FOLDER without a network. The default is the folder of lull's own releases.
	URL string
}

// Throughput is a number of read units and a number of write units a second.
type Throughput struct{ Reads, Writes int }

// Architecture is an instruction set.
type Architecture string

// The architectures of Lambda.
const (
	ARM64  Architecture = "arm64"
	X86_64 Architecture = "x86_64"
)

// Upstream is one sender of events. Exactly one of Topic, Bus, Pipe and Sender is set.
type Upstream struct {
	// Sink is the sink to whose queue the upstream sends. Default: the setting defaultSink. If a
	// collection of that sink has several sinks, a Topic, Bus or Pipe sends to the queues of all
	// these sinks. A Sender, a pipe of a broker's queue, and a pipe with a Group can send to only
	// one queue.
	Sink string
	// Lane is Live or Bulk. Default Live.
	Lane Lane

	// Topic is an SNS topic that the queue subscribes to, with raw delivery, so that message
	// attributes such as lull-source arrive. Messages that cannot be delivered go to the
	// dead-letter queue.
	Topic awssns.ITopic
	// Envelope keeps SNS's envelope around the messages of Topic. The envelope names the topic, so
	// a rule with topic under sources.<name>.match needs the envelope. With Envelope, message
	// attributes do not arrive. lull sets Envelope itself if a rule names the topic's ARN. For a
	// topic of the same app, set Envelope yourself, because such a topic has no ARN yet.
	Envelope bool
	// Bus is an event bus. A rule with Pattern sends each event that matches, unchanged.
	Bus     awsevents.IEventBus
	Pattern *awsevents.EventPattern
	// Pipe reads a stream, a topic of Kafka or the queue of a broker with EventBridge Pipes.
	Pipe *Pipe
	// Sender sends directly: a role, an account, or a service such as S3.
	Sender awsiam.IPrincipal
	// SenderARN limits a Sender that is a service to one resource, such as the bucket that sends
	// notifications. Required for services.
	SenderARN string
}

// Vpc is the network that index runs in, if the sink can only be reached from there. The subnets
// need access to DynamoDB, S3, SQS, Step Functions and, with a secret, Secrets Manager: through
// gateway and interface endpoints, or NAT.
type Vpc struct {
	SubnetIDs        []string
	SecurityGroupIDs []string
}

// architecture returns Architecture or its default.
func (p *Props) architecture() Architecture { return cmp.Or(p.Architecture, ARM64) }

// sink returns the name of the sink to whose queue the upstream sends.
func (u Upstream) sink(c *config.Config) string { return cmp.Or(u.Sink, c.DefaultSink) }

// sinks lists all sinks whose queues receive the upstream's events. These are the upstream's own
// sink, and the other sinks of every collection that has this sink.
func (u Upstream) sinks(c *config.Config) []string {
	if u.singleQueue() {
		return []string{u.sink(c)}
	}
	return c.Companions(u.sink(c))
}

// singleQueue reports whether the upstream can deliver to only one queue. This is so for a direct
// sender, and for a pipe that consumes from a broker's queue or with a fixed consumer group.
func (u Upstream) singleQueue() bool {
	return u.Sender != nil || u.Pipe != nil && (u.Pipe.broker() != nil ||
		u.Pipe.Kafka != nil && u.Pipe.Kafka.Group != "")
}

// lane returns the lane to which the upstream sends.
func (u Upstream) lane() flight.Lane { return cmp.Or(u.Lane, flight.Live) }
