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
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/names"
	_ "github.com/lullhq/lull/sink/builtin"
	_ "github.com/lullhq/lull/source/builtin"
)

// Props are what Lull is made from. Config is required, and AssetDir or Release; the zero value of
// everything else is a good default.
type Props struct {
	// Config are the settings, as LoadSettings reads them.
	Config *Settings
	// AssetDir is the folder with receive/bootstrap, index/KIND/bootstrap for each kind of sink that
	// the settings name, prune/bootstrap and dlq/bootstrap: what `make build` and BuildFunctions make.
	// With kinds of your own, name your program for all of them index/bootstrap.
	AssetDir string
	// Release is where the functions come from without an AssetDir. Default: the release that this
	// program is of, if it is of one.
	Release Release
	// Architecture is what the functions are deployed as. Default ARM64, which costs a fifth less.
	Architecture Architecture

	// Upstreams are who may send, and to which queue. Without any, only principals with
	// sqs:SendMessage of their own can.
	Upstreams []Upstream
	// SinkARNs are the ARNs of sinks with auth.kind sigv4, by the sink's name, where its URL does
	// not tell them.
	SinkARNs map[string]string
	// Vpc is where index runs. Default nil: outside of any.
	Vpc *Vpc
	// Key encrypts queues, table and bucket. Default nil: keys that AWS owns. An imported key's
	// policy must let the upstreams' services and this account's roles use it. It needs a stack
	// with an environment (account and region).
	Key awskms.IKey

	// ReadKeyARNs are KMS keys, by ARN, that encrypt what is read from elsewhere: the secrets of sinks
	// (auth.secretARN) and pipes, the buckets of `payload.allow`, and the streams of pipes. Default none:
	// keys that AWS manages.
	ReadKeyARNs []string

	// Operators may assume the roles of the command line. Default: what the account's own policies
	// allow to.
	Operators awsiam.IPrincipal
	// CommitBus gets an event for each commit, where the settings say commitFeed. Default: the account's
	// default bus.
	CommitBus awsevents.IEventBus
	// AlarmTopic is told when an alarm goes off and when it ends. Default nil: alarms are only seen
	// in CloudWatch.
	AlarmTopic awssns.ITopic
	// Thresholds replace those of alarms, by the alarm's name without stack and sink, such as freshness
	// or live-age. docs/runbook says the unit of each. Default: what the promises follow from.
	Thresholds map[string]float64
	// Memory is the memory of functions in MB, 128 to 10,240, by function. Default: what they were
	// measured with.
	Memory map[Function]int
	// IndexConcurrency is the most invocations of index at once, for each sink: it is reserved, so that
	// the other functions of the account keep theirs. Default 0: whatever the account has.
	IndexConcurrency int
	// Warm is how many reads and writes a second the table takes at once. Default zero: what a new
	// table takes, about 12,000 units of reads and 4,000 of writes.
	Warm Throughput
	// LogLevel is DEBUG, INFO, WARN or ERROR. Default INFO. Metrics do not depend on it.
	LogLevel string
	// LogRetention is how long logs are kept. Default a month.
	LogRetention awslogs.RetentionDays

	// Protect keeps the table from being deleted by hand; `infra/cmd` also keeps the stack from being
	// deleted. Set it once the first deploy has succeeded: CloudFormation cannot take back a first
	// deploy that failed where its stack or its table is protected. Default false: table, bucket and
	// queues outlive the stack in any case.
	Protect bool
	// StateOnly builds the table, the bucket and the queues and nothing else: what `cdk import` takes
	// from an earlier stack into a new one. Import, then deploy without it.
	StateOnly bool

	// Ephemeral is for tests: everything is deleted with the stack, and binaries of another
	// architecture are accepted, because emulators run what the host can. Never set it where
	// documents matter.
	Ephemeral bool
	// PlainHTTP leaves out the policies that demand TLS: an emulator that enforces IAM has an http
	// endpoint. Only with Ephemeral.
	PlainHTTP bool

	fetched map[names.Program][]byte // the programs of the release, by Validate
	// template makes a release's template: whose code the functions have. Their settings are in the
	// environment then, and nothing is staged.
	template func(names.Program) awslambda.Code
}

// Release is a release of lull, whose functions need no Go. They are kept in the user's cache
// folder. A zip with another SHA-256 than the release says is never used.
type Release struct {
	// Version is such as v0.1.0.
	Version string
	// Sum is the SHA-256 of the release's file SHA256SUMS, in hexadecimal. The release's page says
	// it. Not needed in a program of that release.
	Sum string
	// URL is the folder of the releases, with a folder for each version: https://HOST/PATH, or
	// file:///FOLDER without a network. Default: where lull is released.
	URL string
}

// Throughput is in read and write units a second.
type Throughput struct{ Reads, Writes int }

// Architecture is an instruction set.
type Architecture string

// The architectures of Lambda.
const (
	ARM64  Architecture = "arm64"
	X86_64 Architecture = "x86_64"
)

// Upstream is one sender. Exactly one of Topic, Bus, Pipe and Sender is set.
type Upstream struct {
	// Sink is whose queue it sends to. Default: the settings' defaultSink. Where a collection of that
	// sink has several, a Topic, Bus or Pipe sends to all of their queues. A Sender, and a pipe of a
	// broker's queue or with a Group of its own, cannot.
	Sink string
	// Lane is Live or Bulk. Default Live.
	Lane Lane

	// Topic is subscribed to, with raw delivery: message attributes such as lull-source arrive.
	// Messages that cannot be delivered go to the dead-letter queue.
	Topic awssns.ITopic
	// Envelope leaves SNS's envelope around the messages of Topic, which names the topic: what a rule
	// under sources.<name>.match with topic needs. Attributes do not arrive then. It is so in any case
	// where a rule names the topic's ARN; a topic of the same app has none yet, so say it here.
	Envelope bool
	// Bus has a rule made with Pattern: events that match are sent whole.
	Bus     awsevents.IEventBus
	Pattern *awsevents.EventPattern
	// Pipe has EventBridge Pipes read a stream, a topic of Kafka or a queue of a broker.
	Pipe *Pipe
	// Sender sends directly: a role, an account, or a service such as S3.
	Sender awsiam.IPrincipal
	// SenderARN limits a Sender that is a service to one resource, such as the bucket that
	// notifies. Required for services.
	SenderARN string
}

// Vpc is where index runs, when the sink is only reached from there. The subnets need a way to
// DynamoDB, S3, SQS, Step Functions and, with a secret, Secrets Manager: gateway and interface
// endpoints, or NAT.
type Vpc struct {
	SubnetIDs        []string
	SecurityGroupIDs []string
}

// architecture is Architecture or its default.
func (p *Props) architecture() Architecture { return cmp.Or(p.Architecture, ARM64) }

// sink is whose queue the upstream sends to.
func (u Upstream) sink(c *config.Config) string { return cmp.Or(u.Sink, c.DefaultSink) }

// sinks are all sinks whose queues get what the upstream sends: those of every collection that its
// sink shares with others.
func (u Upstream) sinks(c *config.Config) []string {
	if u.one() {
		return []string{u.sink(c)}
	}
	return c.Companions(u.sink(c))
}

// one reports whether what the upstream sends can come to one queue only: it is sent there, or
// taken out of a queue of somebody else's.
func (u Upstream) one() bool {
	return u.Sender != nil || u.Pipe != nil && (u.Pipe.broker() != nil ||
		u.Pipe.Kafka != nil && u.Pipe.Kafka.Group != "")
}

// lane is the queue that the upstream sends to.
func (u Upstream) lane() flight.Lane { return cmp.Or(u.Lane, flight.Live) }
