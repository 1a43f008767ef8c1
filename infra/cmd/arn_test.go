// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/infra"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the table in docs/deploy.md")

// The account and region of the stack in these tests, and the kinds of ARNs that the tests try.
const (
	ownAccount, ownRegion = "111122223333", "eu-west-1"

	own, region, account, china, gov, fifo, malformed = "own", "region", "account", "china", "gov", "fifo", "malformed"
)

// arnField is one option, field of Props or setting that names a resource of AWS.
type arnField struct {
	name string // the variable of an option, the field of Props (with [] for an element), or the setting
	form string // a format for the ARN, with partition, region, account and the suffix of a FIFO topic
	set  func(*infra.Props, string)
	lead string // for an option: the text before the ARN
	// accepted lists the kinds of ARNs that work, in addition to own.
	accepted []string
	// says has, for each other kind of ARN, a part of the advice in the fault.
	says map[string]string
	junk string // a malformed ARN, if the ARN of another service is not malformed for the field
	// names lists names and ids that work, if the value need not be an ARN.
	names []string
}

// The fakes stand for CDK objects that were created elsewhere, so that only the ARN is known.
type (
	aTopic struct {
		awssns.ITopic
		arn string
	}
	aBus struct {
		awsevents.IEventBus
		arn string
	}
	aKey struct {
		awskms.IKey
		arn string
	}
	aPrincipal struct {
		awsiam.IPrincipal
		awsiam.PrincipalPolicyFragment
		arn string
	}
)

func (a aTopic) TopicArn() *string                                  { return &a.arn }
func (a aBus) EventBusArn() *string                                 { return &a.arn }
func (a aKey) KeyArn() *string                                      { return &a.arn }
func (a aPrincipal) PolicyFragment() awsiam.PrincipalPolicyFragment { return a }
func (a aPrincipal) PrincipalJson() *map[string]*[]*string {
	return &map[string]*[]*string{"AWS": jsii.Strings(a.arn)}
}

// arnFields lists all options, fields and settings that name a resource of AWS.
// TestEachOptionFieldAndSettingWithAnARNIsInTheTable finds a missing entry.
func arnFields() []arnField {
	const (
		sns, bus, key, secret = "arn:%s:sns:%s:%s:published%s", "arn:%s:events:%s:%s:event-bus/content",
			"arn:%s:kms:%s:%s:key/k", "arn:%s:secretsmanager:%s:%s:secret:s-AbCdEf"
		stream = "arn:%s:dynamodb:%s:%s:table/items/stream/2026-11-20T00:00:00.000"
		clicks = "arn:%s:kinesis:%s:%s:stream/clicks"
		role   = "arn:%[1]s:iam::%[3]s:role/cms"
	)
	pipe := func(change func(*infra.Pipe, string)) func(*infra.Props, string) {
		return func(p *infra.Props, arn string) {
			made := &infra.Pipe{Name: "p"}
			change(made, arn)
			p.Upstreams = []infra.Upstream{{Pipe: made}}
		}
	}
	upstream := func(u func(string) infra.Upstream) func(*infra.Props, string) {
		return func(p *infra.Props, arn string) { p.Upstreams = []infra.Upstream{u(arn)} }
	}
	ofKafka := func(change func(*infra.Kafka, string)) func(*infra.Props, string) {
		return pipe(func(p *infra.Pipe, arn string) { p.Kafka = &infra.Kafka{}; change(p.Kafka, arn) })
	}
	ofSink := func(change func(*config.Sink, string)) func(*infra.Props, string) {
		return func(p *infra.Props, arn string) {
			s := p.Config.Sinks["search"]
			change(&s, arn)
			p.Config.Sinks["search"] = s
		}
	}
	ofCollection := func(change func(*config.Enrich, string)) func(*infra.Props, string) {
		return func(p *infra.Props, arn string) {
			e := &config.Enrich{Kind: config.EnrichHTTP, URL: "https://embed.example.org", Inputs: []string{"/title"}}
			change(e, arn)
			p.Config.Collections["content"] = config.Collection{Enrich: e}
		}
	}
	toPipes := map[string]string{region: "replicate the data", account: "forward the changes"}
	toSecrets := map[string]string{region: "replicate the secret"}
	toTopics := map[string]string{region: "publish to a topic of this region", fifo: "publish to a standard topic"}
	toBus := map[string]string{region: "forwards to a bus of this region", account: "forwards to a bus of this account"}
	toKey := map[string]string{region: "multi-region key", account: "a key of this account"}
	toAlarms := map[string]string{region: "a topic of this region", fifo: "a standard topic"}
	others, anywhere := []string{account}, []string{account, region}
	return []arnField{
		{name: optTopics.env, form: sns, accepted: others, says: toTopics},
		{
			name: "Upstreams[].Topic", form: sns, accepted: others, says: toTopics,
			set: upstream(func(arn string) infra.Upstream { return infra.Upstream{Topic: aTopic{arn: arn}} }),
		},
		{name: optBus.env, form: bus, says: toBus, names: []string{"default", "content"}},
		{
			name: "Upstreams[].Bus", form: bus, says: toBus,
			set: upstream(func(arn string) infra.Upstream { return infra.Upstream{Bus: aBus{arn: arn}} }),
		},
		{
			name: "CommitBus", form: bus,
			says: map[string]string{region: "a bus of this region", account: "a bus of this account"},
			set:  func(p *infra.Props, arn string) { p.CommitBus = aBus{arn: arn} },
		},
		{name: optStreams.env, form: clicks, says: toPipes},
		{name: optStreams.env, lead: "search/bulk=", form: stream, says: toPipes},
		{
			name: "Upstreams[].Pipe.DynamoDB", form: stream, says: toPipes,
			set: pipe(func(p *infra.Pipe, arn string) { p.DynamoDB = arn }),
		},
		{
			name: "Upstreams[].Pipe.Kinesis", form: clicks, says: toPipes,
			set: pipe(func(p *infra.Pipe, arn string) { p.Kinesis = arn }),
		},
		{
			name: "Upstreams[].Pipe.Kafka.Cluster", form: "arn:%s:kafka:%s:%s:cluster/c/1", says: toPipes,
			set: ofKafka(func(k *infra.Kafka, arn string) { k.Cluster = arn }),
		},
		{
			name: "Upstreams[].Pipe.Kafka.SecretARN", form: secret, accepted: others, says: toSecrets,
			set: ofKafka(func(k *infra.Kafka, arn string) { k.SecretARN = arn }),
		},
		{
			name: "Upstreams[].Pipe.Kafka.RootSecretARN", form: secret, accepted: others, says: toSecrets,
			set: ofKafka(func(k *infra.Kafka, arn string) { k.RootSecretARN = arn }),
		},
		{
			name: "Upstreams[].Pipe.Kafka.Vpc.SubnetIDs[]", names: []string{"subnet-a"},
			set: ofKafka(func(k *infra.Kafka, id string) { k.Vpc = &infra.Vpc{SubnetIDs: []string{id}} }),
		},
		{
			name: "Upstreams[].Pipe.Kafka.Vpc.SecurityGroupIDs[]", names: []string{"sg-a"},
			set: ofKafka(func(k *infra.Kafka, id string) { k.Vpc = &infra.Vpc{SecurityGroupIDs: []string{id}} }),
		},
		{
			name: "Upstreams[].Pipe.RabbitMQ.ARN", form: "arn:%s:mq:%s:%s:broker:b:b-1", says: toPipes,
			set: pipe(func(p *infra.Pipe, arn string) { p.RabbitMQ = &infra.Broker{ARN: arn} }),
		},
		{
			name: "Upstreams[].Pipe.RabbitMQ.SecretARN", form: secret, accepted: others, says: toSecrets,
			set: pipe(func(p *infra.Pipe, arn string) { p.RabbitMQ = &infra.Broker{SecretARN: arn} }),
		},
		{
			name: "Upstreams[].Pipe.ActiveMQ.ARN", form: "arn:%s:mq:%s:%s:broker:b:b-1", says: toPipes,
			set: pipe(func(p *infra.Pipe, arn string) { p.ActiveMQ = &infra.Broker{ARN: arn} }),
		},
		{
			name: "Upstreams[].Pipe.ActiveMQ.SecretARN", form: secret, accepted: others, says: toSecrets,
			set: pipe(func(p *infra.Pipe, arn string) { p.ActiveMQ = &infra.Broker{SecretARN: arn} }),
		},
		{name: optSenders.env, form: role, accepted: others, names: []string{"444455556666"}},
		{
			name: "Upstreams[].Sender", form: role, accepted: others, names: []string{"444455556666"},
			set: upstream(func(arn string) infra.Upstream { return infra.Upstream{Sender: aPrincipal{arn: arn}} }),
		},
		{name: optBuckets.env, form: "arn:%[1]s:s3:::incoming"},
		{
			name: "Upstreams[].SenderARN", form: "arn:%s:sns:%s:%s:topic", junk: "topic", accepted: []string{region},
			says: map[string]string{account: "a role of the other account"},
			set:  upstream(func(arn string) infra.Upstream { return infra.Upstream{SenderARN: arn} }),
		},
		// For a sink in another region, the settings must name the region of requests. See
		// TestRequestsAreSignedForTheRegionOfTheSink.
		{name: optSinkARNs.env, lead: "search=", form: "arn:%s:es:%s:%s:domain/content", accepted: anywhere},
		{
			name: "SinkARNs[]", form: "arn:%s:es:%s:%s:domain/content", accepted: anywhere,
			set: func(p *infra.Props, arn string) { p.SinkARNs = map[string]string{"search": arn} },
		},
		{name: optSubnets.env, names: []string{"subnet-a"}},
		{
			name: "Vpc.SubnetIDs[]", names: []string{"subnet-a"},
			set: func(p *infra.Props, id string) { p.Vpc = &infra.Vpc{SubnetIDs: []string{id}} },
		},
		{name: optGroups.env, names: []string{"sg-a"}},
		{
			name: "Vpc.SecurityGroupIDs[]", names: []string{"sg-a"},
			set: func(p *infra.Props, id string) { p.Vpc = &infra.Vpc{SecurityGroupIDs: []string{id}} },
		},
		{name: optKey.env, form: key, says: toKey},
		{
			name: "Key", form: key, says: toKey,
			set: func(p *infra.Props, arn string) { p.Key = aKey{arn: arn} },
		},
		{name: optReadKeys.env, form: key, accepted: others, says: map[string]string{region: "its replica"}},
		{
			name: "ReadKeyARNs[]", form: key, accepted: others, says: map[string]string{region: "its replica"},
			set: func(p *infra.Props, arn string) { p.ReadKeyARNs = []string{arn} },
		},
		{name: optOperators.env, form: role, accepted: others},
		{
			name: "Operators", form: role, accepted: others,
			set: func(p *infra.Props, arn string) { p.Operators = aPrincipal{arn: arn} },
		},
		{name: optAlarmTopic.env, form: sns, accepted: others, says: toAlarms},
		{
			name: "AlarmTopic", form: sns, accepted: others, says: toAlarms,
			set: func(p *infra.Props, arn string) { p.AlarmTopic = aTopic{arn: arn} },
		},
		{name: optTicketTopic.env, form: sns, accepted: others, says: toAlarms},
		{
			name: "TicketTopic", form: sns, accepted: others, says: toAlarms,
			set: func(p *infra.Props, arn string) { p.TicketTopic = aTopic{arn: arn} },
		},
		{
			name: "sinks.<name>.auth.secretARN", form: secret, accepted: others, says: toSecrets,
			set: ofSink(func(s *config.Sink, arn string) {
				s.Auth = config.Auth{Kind: config.AuthBasic, SecretARN: arn}
			}),
		},
		{
			name: "sources.<name>.fetch.headers.secretARN", form: secret,
			accepted: others, says: toSecrets,
			set: func(p *infra.Props, arn string) {
				s := p.Config.Sources["native"]
				s.Fetch = &source.Fetch{Headers: source.Headers{SecretARN: arn}}
				p.Config.Sources["native"] = s
			},
		},
		{
			name: "collections.<name>.enrich.functionARN",
			form: "arn:%s:lambda:%s:%s:function:embed", accepted: anywhere,
			set: ofCollection(func(e *config.Enrich, arn string) {
				e.Kind, e.URL, e.FunctionARN = config.EnrichLambda, "", arn
			}),
		},
		{
			name: "collections.<name>.enrich.headers.secretARN",
			form: secret, accepted: others, says: toSecrets,
			set: ofCollection(func(e *config.Enrich, arn string) { e.Headers.SecretARN = arn }),
		},
	}
}

// withoutARN lists the options, fields and settings that are texts, but do not name a resource that
// the stack uses.
var withoutARN = map[string]string{
	"AssetDir": "a folder", "Release.Version": "a release", "Release.Sum": "a checksum", "Release.URL": "a folder",
	"Architecture": "a choice", "LogLevel": "a choice", "Rollout": "a choice", "LogRetention": "a choice",
	"Upstreams[].Sink": "of the settings", "Upstreams[].Lane": "a choice", "Upstreams[].Pipe.Name": "the stack makes it",
	"Upstreams[].Pipe.Filters[]": "patterns", "Upstreams[].Pipe.From": "a choice",
	"Upstreams[].Pipe.Kafka.Servers[]": "addresses, of anywhere", "Upstreams[].Pipe.Kafka.Topic": "of the cluster",
	"Upstreams[].Pipe.Kafka.Group": "of the cluster", "Upstreams[].Pipe.Kafka.Login": "a choice",
	"Upstreams[].Pipe.RabbitMQ.Queue": "of the broker", "Upstreams[].Pipe.RabbitMQ.VirtualHost": "of the broker",
	"Upstreams[].Pipe.ActiveMQ.Queue": "of the broker", "Upstreams[].Pipe.ActiveMQ.VirtualHost": "of the broker",
	"sources.<name>.match[].topic":  "is compared with what messages say, of whatever place",
	"sources.<name>.match[].stream": "is compared with what messages say, of whatever place",
}

// arnOf returns an ARN of this kind.
func (n arnField) arnOf(kind string) string {
	in, at, who, end := "aws", ownRegion, ownAccount, ""
	switch kind {
	case account:
		who = "444455556666"
	case region:
		at = "us-east-1"
	case china:
		in, at = "aws-cn", "cn-north-1"
	case gov:
		in, at = "aws-us-gov", "us-gov-west-1"
	case fifo:
		end = ".fifo"
	}
	arn, _, _ := strings.Cut(fmt.Sprintf(n.form, in, at, who, end), "%!(EXTRA")
	if kind == malformed {
		return cmp.Or(n.junk, strings.Replace(arn, "arn:aws:", "arn:aws:x", 1))
	}
	return arn
}

// has reports whether the resource has ARNs of this kind. For example, the ARN of a role has no
// region, so a role has no ARN of another region.
func (n arnField) has(kind string) bool {
	return kind == own || kind == china || kind == gov || kind == malformed || n.arnOf(kind) != n.arnOf(own)
}

// faultFor returns the fault that a stack in the own account and region reports for a value, or ""
// if the stack accepts the value.
func (n arnField) faultFor(t *testing.T, value string) string {
	t.Helper()
	vars := map[string]string{
		"LULL_CONFIG": settings(t, good+"    auth: {kind: sigv4}\n"), "LULL_STATE_ONLY": "true",
		"CDK_DEFAULT_ACCOUNT": ownAccount, "CDK_DEFAULT_REGION": ownRegion,
	}
	if n.set == nil {
		if n.name == optBus.env {
			vars[optSources.env] = "cms"
		}
		vars[n.name] = n.lead + value
	}
	o, err := read(environment(vars))
	if o == nil {
		t.Fatal(err)
	}
	if n.set != nil {
		n.set(o.props, value)
	}
	field := strings.NewReplacer(
		"Upstreams[]", "Upstreams[0]", "sinks.<name>", "sinks.search", "sources.<name>", "sources.native",
		"collections.<name>", "collections.content", "SinkARNs[]", "SinkARNs[search]", "[]", "").Replace(n.name)
	if err = errors.Join(err, o.validate()); err == nil {
		return ""
	}
	for _, fault := range config.Apart(err) {
		text := fault.Error()
		ofOption := n.set == nil && strings.Contains(text, n.name) && strings.Contains(text, value)
		if ofOption || strings.HasPrefix(text, field+" (") {
			return text
		}
	}
	return ""
}

// Each option, field and setting accepts an ARN that works. It refuses any other ARN, and the fault
// says what to do.
func TestAnARNThatCannotWorkIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	for _, n := range arnFields() {
		for _, name := range n.names {
			t.Run(n.name+" "+name, func(t *testing.T) {
				t.Parallel()
				if fault := n.faultFor(t, name); fault != "" {
					t.Error(fault)
				}
				if fault := n.faultFor(t, "!"+name); !strings.Contains(fault, "write ") {
					t.Errorf("malformed: got %q", fault)
				}
			})
		}
		for _, kind := range []string{own, region, account, china, gov, fifo, malformed} {
			if n.form == "" || !n.has(kind) {
				continue
			}
			t.Run(n.name+" "+n.arnOf(kind), func(t *testing.T) {
				t.Parallel()
				fault, want := n.faultFor(t, n.arnOf(kind)), n.says[kind]
				switch {
				case kind == own || slices.Contains(n.accepted, kind):
					if fault != "" {
						t.Errorf("refused: %s", fault)
					}
					return
				case kind == china || kind == gov:
					want = "deploy a stack there"
				case kind == malformed:
					want = "write "
				case kind == fifo && want == "":
					t.Fatal("the table has no advice for a FIFO topic")
				}
				if want == "" || !strings.Contains(fault, want) {
					t.Errorf("got %q, want it refused with %q", fault, want)
				}
			})
		}
	}
}

// Each option, field and setting that is a text or an object of CDK must be either in arnFields or
// in withoutARN. The test finds a new one that is in neither list.
func TestEachOptionFieldAndSettingWithAnARNIsInTheTable(t *testing.T) {
	t.Parallel()
	placed, unused := make(map[string]bool), make(map[string]bool)
	for _, n := range arnFields() {
		placed[n.name], unused[n.name] = true, true
	}
	for name := range withoutARN {
		unused[name] = true
	}
	check := func(name string) {
		delete(unused, name)
		if _, ok := withoutARN[name]; ok == placed[name] {
			t.Errorf("%s: in the table: %t, among those that name no resource: %t; want one", name, placed[name], ok)
		}
	}
	for _, o := range allOptions {
		if takes := regexp.MustCompile(`\bARNs?\b|\bids?\b`).MatchString(o.doc); takes {
			check(o.env)
		}
	}
	fields(reflect.TypeFor[infra.Props](), "", check)
	for _, s := range config.Settings() {
		if s.Unit == setting.UnitText && strings.Contains(s.Shape, "ARN") {
			check(s.Name)
		}
	}
	for name := range unused {
		t.Errorf("%s: there is no such option, field or setting", name)
	}
}

// fields calls check for the path of each text and each object of CDK in a type.
func fields(of reflect.Type, at string, check func(string)) {
	switch {
	case of == reflect.TypeFor[*infra.Settings]() || of == reflect.TypeFor[*awsevents.EventPattern]():
	case of.Kind() == reflect.Pointer:
		fields(of.Elem(), at, check)
	case of.Kind() == reflect.Slice:
		fields(of.Elem(), at+"[]", check)
	case of.Kind() == reflect.Map:
		fields(of.Elem(), at+"[]", check)
	case of.Kind() == reflect.Struct:
		for i := range of.NumField() {
			if f := of.Field(i); f.IsExported() {
				fields(f.Type, strings.TrimPrefix(at+"."+f.Name, "."), check)
			}
		}
	case of.Kind() == reflect.String, of.Kind() == reflect.Interface:
		check(at)
	}
}

// Requests to a sink in another region were once signed for the region of the stack, and the sink
// refused every request.
func TestRequestsAreSignedForTheRegionOfTheSink(t *testing.T) {
	t.Parallel()
	const domain = "sinks:\n  search:\n    kind: opensearch\n    index: lull-{collection}\n" +
		"    url: https://search-content-abcdefghijklmnopqrstuvwxyz.us-east-1.es.amazonaws.com\n"
	for name, tt := range map[string]struct{ text, arns, want string }{
		"an ARN of another region": {
			good + "    auth: {kind: sigv4}\n", "search=arn:aws:es:us-east-1:111122223333:domain/content", "write us-east-1",
		},
		"a domain of another region": {domain + "    auth: {kind: sigv4}\n", "", "write us-east-1"},
		"that is told":               {domain + "    auth: {kind: sigv4, region: us-east-1}\n", "", ""},
		"told of the ARN": {
			good + "    auth: {kind: sigv4, region: us-east-1}\n", "search=arn:aws:es:us-east-1:111122223333:domain/content", "",
		},
		"an ARN that CDK tells later": {
			good + "    auth: {kind: sigv4}\n", "search=arn:aws:es:${Token[AWS.Region.4]}:111122223333:domain/content", "",
		},
		"told wrongly": {
			good + "    auth: {kind: sigv4, region: us-east-1}\n", "search=arn:aws:es:eu-west-1:111122223333:domain/content",
			"write eu-west-1",
		},
	} {
		o, err := read(environment(map[string]string{
			"LULL_CONFIG": settings(t, tt.text), "LULL_STATE_ONLY": "true", "LULL_SINK_ARNS": tt.arns,
			"CDK_DEFAULT_ACCOUNT": ownAccount, "CDK_DEFAULT_REGION": ownRegion,
		}))
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(o.validate())
		named := strings.Contains(got, "sinks.search.auth.region")
		if named != (tt.want != "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s, want %q", name, got, tt.want)
		}
	}
}

// Without an environment, the stack may be deployed to any region. So only an ARN that works in no
// region is refused.
func TestWithoutAnEnvironmentRegionsAreNotJudged(t *testing.T) {
	t.Parallel()
	for arn, want := range map[string]int{
		"arn:aws:sns:us-east-1:444455556666:p": 0, "arn:aws:sns:us-east-1:444455556666:p.fifo": 1,
	} {
		var r reader
		if r.refer(optTopics, nil, arn); len(r.errs) != want {
			t.Errorf("%s: got %v", arn, r.errs)
		}
		p := infra.Props{Upstreams: []infra.Upstream{{Topic: aTopic{arn: arn}}}, StateOnly: true}
		c, err := infra.LoadSettings(settings(t, good))
		if err != nil {
			t.Fatal(err)
		}
		p.Config = c
		if got := len(infra.Faults(p.Validate())); got != want {
			t.Errorf("%s: got %v", arn, p.Validate())
		}
	}
	for region, want := range map[string]string{
		"eu-west-1": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov", "us-isob-east-1": "aws-iso-b",
	} {
		var r reader
		env := &awscdk.Environment{Account: jsii.String("111122223333"), Region: jsii.String(region)}
		r.refer(optTopics, env, "arn:"+want+":sns:"+region+":111122223333:p")
		if len(r.errs) > 0 {
			t.Errorf("%s: got %v", region, r.errs)
		}
	}
}

// refusal matches the text of a fault. Its group is the advice.
var refusal = regexp.MustCompile(
	`(?:is not in the stack's region \S+|is not of the stack's account \d+|is a FIFO topic): (.*?)(?: \(LULL_[A-Z_]+\))?$`)

// The table on the page repeats the faults of the stack word for word.
func TestThePageSaysWhatEachARNMayBe(t *testing.T) {
	t.Parallel()
	const page = "../../docs/deploy.md"
	begin := []byte("<!-- arns: go test ./infra/cmd -run TestThePage -rewrite -->\n")
	end := []byte("<!-- end of arns -->\n")
	type line struct{ region, account, fifo string }
	var order []line
	lines := make(map[line][]string)
	for _, n := range arnFields() {
		if n.form == "" {
			continue // the field has an id, and not an ARN
		}
		name := "`" + strings.TrimSuffix(strings.TrimPrefix(n.name, "Upstreams[]."), "[]") + "`"
		said := func(kind string) string {
			if !n.has(kind) {
				return "-"
			}
			fault := n.faultFor(t, n.arnOf(kind))
			if fault == "" {
				return "yes"
			}
			m := refusal.FindStringSubmatch(fault)
			if m == nil {
				t.Fatalf("%s: the fault %s does not say why", n.name, fault)
			}
			return m[1]
		}
		l := line{said(region), said(account), said(fifo)}
		if lines[l] == nil {
			order = append(order, l)
		}
		if !slices.Contains(lines[l], name) {
			lines[l] = append(lines[l], name)
		}
	}
	var table bytes.Buffer
	table.WriteString("\n| named by | of another region | of another account | FIFO |\n|---|---|---|---|\n")
	for _, l := range order {
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", strings.Join(lines[l], ", "), l.region, l.account, l.fifo)
	}
	table.WriteString("\n")
	text, err := os.ReadFile(filepath.FromSlash(page))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(text, begin)
	now, after, closed := bytes.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Fatalf("%s has no table of ARNs", page)
	case bytes.Equal(now, table.Bytes()):
	case !*rewrite:
		t.Errorf("the table in %s differs (go test ./infra/cmd -run TestThePage -rewrite):\n%s", page, &table)
	default:
		if err := os.WriteFile(page, slices.Concat(before, begin, table.Bytes(), end, after), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
