// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"
	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
	_ "github.com/lullhq/lull/sink/memorysink"
	"github.com/lullhq/lull/sink/opensearch"
	"github.com/lullhq/lull/source"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the files of expected results")

// All stacks are synthesised once for all tests, because Node takes seconds to start.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	jsii.Close()
	if folder != "" {
		_ = os.RemoveAll(folder)
	}
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// The stacks: one with only the defaults, one that sets everything, one that writes to a serverless
// collection, one for tests on an emulator. The other stacks differ from these in one point.
const (
	plainStack      = "plain"
	fullStack       = "full"
	serverlessStack = "serverless"
	testStack       = "ephemeral"
	stateStack      = "state"
	standardStack   = "standard" // plainStack with Standard flights
	feedStack       = "feed"     // plainStack with a commit feed
	searchableStack = "asked"    // plainStack with a URL that says whether a version is searchable
	privateStack    = "private"  // plainStack with a password, in a network without a way out
	jobStack        = "work"     // a stack with a canary, and sinks with each kind of credentials
	verifyStack     = "heal"     // a stack that verifies a collection
	existingStack   = "existing" // plainStack with a table and a live queue that exist already
)

// identifiers are the Identifiers of stateStack.
var identifiers map[string]map[string]string

// folder is the folder with the tests' assets and the synthesised app.
var folder string

// app synthesises all stacks and reads their templates.
var app = sync.OnceValues(func() (map[string]*template, error) {
	var err error
	if folder, err = os.MkdirTemp("", "lull-infra-"); err != nil {
		return nil, err
	}
	for _, f := range append(names.Functions(), names.Feed, names.Searchable, names.Job) {
		for _, kind := range sink.Kinds() {
			of := string(f.Program(kind))
			if err := writeProgram(filepath.Join(folder, "dist", of, release.Program), of); err != nil {
				return nil, err
			}
		}
	}
	a := awscdk.NewApp(&awscdk.AppProps{
		Outdir: jsii.String(filepath.Join(folder, "out")), AnalyticsReporting: jsii.Bool(false),
		PostCliContext: &map[string]any{"aws:cdk:enable-path-metadata": true},
	})
	NewLull(awscdk.NewStack(a, jsii.String(plainStack), nil), "Lull", plainProps())
	full := awscdk.NewStack(a, jsii.String(fullStack),
		&awscdk.StackProps{Env: &awscdk.Environment{
			Account: jsii.String("111122223333"),
			Region:  jsii.String("eu-west-1"),
		}})
	NewLull(full, "Lull", fullProps(full))
	NewLull(awscdk.NewStack(a, jsii.String(serverlessStack), nil), "Lull", serverlessProps())
	NewLull(awscdk.NewStack(a, jsii.String(testStack), nil), "Lull", testProps())
	standard := plainProps()
	standard.Config.Flight.Kind, standard.Config.Queues.Live.MaxConcurrency = config.FlightStandard, 20
	standard.Config.Complete()
	NewLull(awscdk.NewStack(a, jsii.String(standardStack), nil), "Lull", standard)
	feed := plainProps()
	feed.Config.Stack, feed.Config.CommitFeed, feed.FeedParallel = feedStack, true, 4
	NewLull(awscdk.NewStack(a, jsii.String(feedStack), nil), "Lull", feed)
	NewLull(awscdk.NewStack(a, jsii.String(searchableStack), nil), "Lull", searchableProps())
	NewLull(awscdk.NewStack(a, jsii.String(existingStack), nil), "Lull", existingProps())
	work := awscdk.NewStack(a, jsii.String(jobStack), &awscdk.StackProps{Env: &awscdk.Environment{
		Account: jsii.String("111122223333"), Region: jsii.String("eu-west-1"),
	}})
	NewLull(work, "Lull", jobProps(work))
	NewLull(awscdk.NewStack(a, jsii.String(verifyStack), nil), "Lull", verifyProps())
	private := awscdk.NewStack(a, jsii.String(privateStack), nil)
	NewLull(private, "Lull", privateProps(private))
	state := plainProps()
	state.StateOnly = true
	identifiers = NewLull(awscdk.NewStack(a, jsii.String(stateStack), nil), "Lull", state).
		Identifiers("111122223333", "cn-north-1")
	judge(a)
	a.Synth(nil)
	synthFaults()
	stacks, err := synthStates()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{
		plainStack, fullStack, serverlessStack, testStack, stateStack, standardStack, existingStack, feedStack,
		privateStack, searchableStack, jobStack, verifyStack,
	} {
		t := &template{}
		if err := readJSON(filepath.Join(folder, "out", name+".template.json"), t); err != nil {
			return nil, err
		}
		if err := readJSON(filepath.Join(folder, "out", name+".assets.json"), &t.assets); err != nil {
			return nil, err
		}
		stacks[name] = t
	}
	return stacks, nil
})

// stackOf returns one synthesised stack.
func stackOf(t *testing.T, name string) *template {
	t.Helper()
	stacks, err := app()
	if err != nil {
		t.Fatal(err)
	}
	return stacks[name]
}

// deployable returns settings with one OpenSearch sink that needs no credentials.
func deployable(stack string) *config.Config {
	c := config.Default()
	c.Stack = stack
	c.Sinks = map[string]config.Sink{"search": {Kind: "opensearch", Index: "lull-{collection}", URL: "https://search.example.org"}}
	c.DefaultSink = ""
	c.Complete()
	return &c
}

func plainProps() *Props {
	return &Props{Config: deployable(plainStack), AssetDir: filepath.Join(folder, "dist")}
}

func searchableProps() *Props {
	p, calls := plainProps(), 20
	p.Config.Stack, p.Config.SearchableCalls = searchableStack, &calls
	return p
}

func existingProps() *Props {
	p := plainProps()
	p.Config.Table.Name = "content-rows"
	s := p.Config.Sinks["search"]
	s.LiveQueue = "published"
	p.Config.Sinks["search"] = s
	return p
}

func privateProps(stack awscdk.Stack) *Props {
	p := plainProps()
	p.Config.Stack, p.Vpc = privateStack, privateNetwork(stack)
	s := p.Config.Sinks["search"]
	s.Auth = config.Auth{Kind: config.AuthBasic, SecretARN: secretARN}
	p.Config.Sinks["search"] = s
	return p
}

const (
	secretARN   = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:archive-AbCdEf"
	headersARN  = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:enrich-AbCdEf"
	fetchARN    = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:fetch-AbCdEf"
	functionARN = "arn:aws:lambda:eu-west-1:111122223333:function:embed:live"
	topicARN    = "arn:aws:sns:eu-west-1:111122223333:published"
	alarmARN    = "arn:aws:sns:eu-west-1:111122223333:alarms"
	ticketARN   = "arn:aws:sns:eu-west-1:111122223333:tickets"
	bucketARN   = "arn:aws:s3:::incoming"
	readKeyARN  = "arn:aws:kms:eu-west-1:111122223333:key/99999999-2222-3333-4444-555555555555"
	itemsARN    = "arn:aws:dynamodb:eu-west-1:111122223333:table/items/stream/2026-11-20T00:00:00.000"
	clicksARN   = "arn:aws:kinesis:eu-west-1:111122223333:stream/clicks/consumer/lull:1795190400"
	mskARN      = "arn:aws:kafka:eu-west-1:111122223333:cluster/content/751d2973-a626-431c-9d4e-d7975eb44dd7-2"
	kafkaARN    = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:AmazonMSK_kafka-AbCdEf"
	rootARN     = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:kafka-root-AbCdEf"
	rabbitARN   = "arn:aws:mq:eu-west-1:111122223333:broker:rabbit:b-9bcfa592-423a-4942-879d-eb284b418fc8"
	activeARN   = "arn:aws:mq:eu-west-1:111122223333:broker:active:b-1bcfa592-423a-4942-879d-eb284b418fc8"

	brokerSecretARN = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:broker-AbCdEf"

	domainURL = "https://vpc-content-abcdefghijklmnopqrstuvwxyz.eu-west-1.es.amazonaws.com"
)

// fullProps sets every option.
func fullProps(stack awscdk.Stack) *Props {
	c := deployable(fullStack)
	c.Sinks = map[string]config.Sink{
		"search": {Kind: "opensearch", Index: "lull-{collection}", URL: domainURL, Auth: config.Auth{Kind: config.AuthSigV4}},
		"archive": {
			Kind: "elasticsearch", Index: "lull-{collection}", URL: "https://archive.example.org",
			Auth: config.Auth{Kind: config.AuthBasic, SecretARN: secretARN},
		},
	}
	c.DefaultSink = "search"
	c.Collections["content"], c.Collections["old-news"] = config.Collection{}, config.Collection{Sink: "archive"}
	c.DefaultCollection = "content"
	native := c.Sources[c.DefaultSource]
	native.Match = []source.Match{{Topic: topicARN}}
	c.Sources[c.DefaultSource] = native
	c.Payload.Allow = []config.BucketPrefix{
		{Bucket: "bodies", Prefix: "published/"},
		{Bucket: "bodies", Prefix: "drafts/"},
	}
	archive, most := c.Sinks["archive"], 7
	archive.MaxConcurrency = &most
	c.Sinks["archive"] = archive
	c.Flight.Kind = config.FlightStandard
	c.TableOutage = config.TableOutageOpen
	c.Archive.Keep = 14 * 24 * time.Hour
	c.Memory.Receive = setting.GB
	c.Queues.ExpectedRate = 20
	c.Complete()
	return &Props{
		Config: c, AssetDir: filepath.Join(folder, "dist"),
		Upstreams: []Upstream{
			{Topic: awssns.Topic_FromTopicArn(stack, jsii.String("Topic"), jsii.String(topicARN))},
			{
				Bus:     awsevents.EventBus_FromEventBusName(stack, jsii.String("Bus"), jsii.String("content")),
				Pattern: &awsevents.EventPattern{Source: jsii.Strings("cms")}, Lane: flight.Bulk,
			},
			{Sender: awsiam.NewAccountPrincipal("444455556666"), Sink: "archive"},
			{
				Sender: awsiam.NewServicePrincipal(jsii.String("s3.amazonaws.com"), nil), SenderARN: bucketARN,
				Sink: "archive", Lane: flight.Bulk,
			},
			{Pipe: &Pipe{Name: "items", DynamoDB: itemsARN, Idle: time.Hour}},
			{Lane: flight.Bulk, Pipe: &Pipe{
				Name: "clicks", Kinesis: clicksARN, From: Newest, Retries: 50, MaxAge: time.Hour, Parallel: 4, Batch: 5,
				Window: time.Second, Filters: []string{`{"data":{"type":["page"]}}`},
			}},
			{Pipe: &Pipe{Name: "pages", Kafka: &Kafka{Cluster: mskARN, Topic: "pages"}}},
			{Pipe: &Pipe{Name: "secret-pages", Kafka: &Kafka{
				Cluster: mskARN, Topic: "pages", Group: "lull", SecretARN: kafkaARN, Login: SCRAM512,
			}}},
			{Sink: "archive", Pipe: &Pipe{Name: "own", Kafka: &Kafka{
				Servers: []string{"kafka-1.example.org:9094", "kafka-2.example.org:9094"}, Topic: "pages",
				SecretARN: kafkaARN, Login: SCRAM256, RootSecretARN: rootARN,
				Vpc: &Vpc{SubnetIDs: []string{"subnet-a"}, SecurityGroupIDs: []string{"sg-a"}},
			}}},
			{Pipe: &Pipe{Name: "rabbit", RabbitMQ: &Broker{
				ARN: rabbitARN, Queue: "published", VirtualHost: "/cms", SecretARN: brokerSecretARN,
			}}},
			{Pipe: &Pipe{Name: "active", ActiveMQ: &Broker{ARN: activeARN, Queue: "published", SecretARN: brokerSecretARN}}},
		},
		IndexConcurrency: 25, LogLevel: "DEBUG", Rollout: Canary5m,
		Warm:    Throughput{Reads: 24_000, Writes: 8_000},
		Protect: true, ReadKeyARNs: []string{readKeyARN},
		Vpc: &Vpc{SubnetIDs: []string{"subnet-a", "subnet-b"}, SecurityGroupIDs: []string{"sg-a"}},
		Key: awskms.Key_FromKeyArn(stack, jsii.String("Key"),
			jsii.String("arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555")),
		Operators:   awsiam.NewArnPrincipal(jsii.String("arn:aws:iam::111122223333:role/support")),
		Thresholds:  map[string]float64{"live-age": 1200},
		AlarmTopic:  awssns.Topic_FromTopicArn(stack, jsii.String("Alarms"), jsii.String(alarmARN)),
		TicketTopic: awssns.Topic_FromTopicArn(stack, jsii.String("Tickets"), jsii.String(ticketARN)),
	}
}

// serverlessProps write to a collection of OpenSearch Serverless, which has no versions.
func serverlessProps() *Props {
	c := deployable(serverlessStack)
	c.Sinks["search"] = config.Sink{
		Kind: "opensearch", Index: "lull-{collection}", URL: "https://abcdefghij0123456789.eu-west-1.aoss.amazonaws.com",
		Options: opensearch.Settings{Serverless: true},
		Auth:    config.Auth{Kind: config.AuthSigV4},
	}
	c.Collections["content"] = config.Collection{Enrich: &config.Enrich{
		Kind: config.EnrichLambda, FunctionARN: functionARN, Inputs: []string{"/title"},
	}}
	c.Collections["news"] = config.Collection{Enrich: &config.Enrich{
		Kind: config.EnrichHTTP, URL: "https://enrich.example.org/", Inputs: []string{"/title"},
		Headers: config.Headers{SecretARN: headersARN},
	}}
	c.DefaultCollection = "content"
	native := c.Sources[c.DefaultSource]
	native.Fetch = &source.Fetch{
		URL: "https://cms.example.org/{id}", Version: "/version", Headers: source.Headers{SecretARN: fetchARN},
	}
	c.Sources[c.DefaultSource] = native
	c.Sources["files"] = config.Source{
		Kind: "native", Match: []source.Match{{Named: true}}, Fetch: &source.Fetch{URL: "s3://exports/content/{id}.json"},
	}
	c.Index.Timeout = 15 * time.Second // time for fetch and enrich
	c.Complete()
	return &Props{Config: c, AssetDir: filepath.Join(folder, "dist"), ReadKeyARNs: []string{readKeyARN}}
}

// testProps are for the stack of an end-to-end test, which accepts programs of another
// architecture.
func testProps() *Props {
	c := deployable(testStack)
	c.Sinks["search"] = config.Sink{Kind: "opensearch", Index: "lull-{collection}", URL: "http://127.0.0.1:9200"}
	c.Queues.Live = config.Lane{Batch: 10, Window: 0, MaxConcurrency: 2}
	c.Lifecycle.PruneEvery = time.Minute
	c.Complete()
	return &Props{
		Config: c, AssetDir: filepath.Join(folder, "dist"), Architecture: X86_64, Ephemeral: true,
		PlainHTTP: true,
	}
}

// writeProgram writes an ELF header for arm64, and then text, so that programs differ.
func writeProgram(path, text string) error {
	return writeELF(path, 183, text)
}

// writeELF writes an ELF header for a machine.
func writeELF(path string, machine uint16, text string) error {
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(header[16:], 2) // executable
	binary.LittleEndian.PutUint16(header[18:], machine)
	binary.LittleEndian.PutUint32(header[20:], 1)
	binary.LittleEndian.PutUint16(header[52:], 64)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, slices.Concat(header, []byte(text)), 0o755)
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
