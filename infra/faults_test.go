// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/source"
)

// builtPrograms returns a folder with four programs for arm64.
func builtPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range names.Functions() {
		of := string(f.Program("opensearch"))
		if err := writeProgram(filepath.Join(dir, of, release.Program), of); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A service acts for every account, so a Sender that is a service needs SenderARN: REVIEW W10. This
// test is not parallel, because CDK's runtime takes one call at a time.
func TestASenderIsNotAnybody(t *testing.T) {
	stackOf(t, plainStack) // starts the runtime
	for _, who := range []awsiam.IPrincipal{
		awsiam.NewServicePrincipal(jsii.String("s3.amazonaws.com"), nil), awsiam.NewAnyPrincipal(), awsiam.NewStarPrincipal(),
	} {
		p := &Props{Config: deployable("lull"), AssetDir: builtPrograms(t), Upstreams: []Upstream{{Sender: who}}}
		if faults := Faults(p.Validate()); len(faults) != 1 || faults[0].Setting != "Upstreams[0].SenderARN" {
			t.Errorf("got %v, want a fault of SenderARN", faults)
		}
		if p.Upstreams[0].SenderARN = bucketARN; p.Validate() != nil {
			t.Errorf("got %v with an ARN", p.Validate())
		}
	}
	p := &Props{
		Config: deployable("lull"), AssetDir: builtPrograms(t),
		Upstreams: []Upstream{{Sender: awsiam.NewAccountPrincipal("444455556666")}},
	}
	if err := p.Validate(); err != nil {
		t.Errorf("an account: %v", err)
	}
}

func TestFaultsOfPropsNameTheSettingAndTheFix(t *testing.T) {
	t.Parallel()
	sink := func(change func(*config.Sink)) func(*Props) {
		return func(p *Props) {
			s := p.Config.Sinks["search"]
			change(&s)
			p.Config.Sinks["search"] = s
		}
	}
	for name, tt := range map[string]struct {
		change func(*Props)
		want   []string // the settings with a fault
	}{
		"no settings": {func(p *Props) { p.Config = nil }, nil},
		"a sink in the process": {
			sink(func(s *config.Sink) { s.Kind, s.URL = "memory", "" }),
			[]string{"sinks.search.kind"},
		},
		"settings that clash": {
			func(p *Props) { p.Config.Queues.Visibility = 10_000_000_000 },
			[]string{"queues.visibility"},
		},
		"names that are too long": {func(p *Props) {
			p.Config.Stack = strings.Repeat("a", 32)
			renameSink(p.Config, strings.Repeat("b", 32))
		}, []string{"sinks." + strings.Repeat("b", 32)}},
		"more upstreams than a queue's policy has room for": {
			func(p *Props) {
				for range maxStatements {
					p.Upstreams = append(p.Upstreams, Upstream{Sender: awsiam.NewAccountPrincipal("444455556666")})
				}
			},
			[]string{"Upstreams"},
		},
		"more sinks than a stack has room for": {
			func(p *Props) {
				for _, name := range strings.Fields("a b c d e f g h") {
					p.Config.Sinks[name] = p.Config.Sinks["search"]
				}
			},
			[]string{"sinks"},
		},
		"names that are too long for the operator's policy": {
			func(p *Props) {
				for i := range 8 {
					p.Config.Sinks[strings.Repeat("a", 30)+string(rune('a'+i))] = p.Config.Sinks["search"]
				}
				p.Config.Stack = "a-stack-with-a-long-name"
				delete(p.Config.Sinks, "search")
			},
			[]string{"sinks"},
		},
		"sinks whose outputs are called the same": {
			func(p *Props) {
				p.Config.Sinks["news"], p.Config.Sinks["news-"] = p.Config.Sinks["search"], p.Config.Sinks["search"]
			},
			[]string{"sinks.news-"},
		},
		"a password in the environment": {
			sink(func(s *config.Sink) {
				s.Auth = config.Auth{Kind: config.AuthBasic, UserEnv: "USER", PasswordEnv: "PASSWORD"}
			}),
			[]string{"sinks.search.auth.userEnv", "sinks.search.auth.passwordEnv"},
		},
		"a domain without a name": {sink(func(s *config.Sink) {
			s.Auth = config.Auth{
				Kind:    config.AuthSigV4,
				Service: "es",
			}
		}), []string{"sinks.search.url"}},
		"an ARN for nothing": {
			func(p *Props) { p.SinkARNs = map[string]string{"other": "arn:aws:es:::domain/x"} },
			[]string{"SinkARNs"},
		},
		"an ARN of something else": {func(p *Props) {
			sink(func(s *config.Sink) { s.Auth = config.Auth{Kind: config.AuthSigV4, Service: "es"} })(p)
			p.SinkARNs = map[string]string{"search": "arn:aws:es:eu-west-1:111122223333:index/x"}
		}, []string{"SinkARNs[search]"}},
		"the function's own host": {
			sink(func(s *config.Sink) { s.URL = "http://127.0.0.1:9200" }),
			[]string{"sinks.search.url"},
		},
		"a VPC without subnets": {func(p *Props) { p.Vpc = &Vpc{SecurityGroupIDs: []string{"sg"}} }, []string{"Vpc"}},
		"an unknown architecture": {
			func(p *Props) { p.Architecture = "mips" },
			[]string{"Architecture", "AssetDir"},
		},
		"less than nobody": {func(p *Props) { p.IndexConcurrency = -1 }, []string{"IndexConcurrency"}},
		"more collections than IAM takes": {func(p *Props) {
			p.Config.Sinks["other"] = p.Config.Sinks["search"]
			p.Config.DefaultSink = "search"
			for i := range 300 {
				p.Config.Collections[fmt.Sprintf("a-collection-of-news-%d", i)] = config.Collection{Sink: "other"}
			}
		}, []string{"collections", "collections"}},
		"more places than IAM takes": {func(p *Props) {
			for i := range 100 {
				p.Config.Payload.Allow = append(p.Config.Payload.Allow, config.BucketPrefix{
					Bucket: "bodies-of-the-publishing-api", Prefix: fmt.Sprintf("published/in/a/folder-%d/", i),
				})
			}
		}, []string{"payload.allow"}},
		"more keys than IAM takes": {func(p *Props) {
			for range 20 {
				p.ReadKeyARNs = append(p.ReadKeyARNs, "arn:aws:kms:eu-west-1:123456789012:key/8f0c1a52-3f0e-4a55-9f3b-0d1a6f1d2c3b")
			}
		}, []string{"ReadKeyARNs"}},
		"a lukewarm table":    {func(p *Props) { p.Warm = Throughput{Reads: 20_000, Writes: 1_000} }, []string{"Warm"}},
		"an unknown rollout":  {func(p *Props) { p.Rollout = "fast" }, []string{"Rollout"}},
		"an unknown level":    {func(p *Props) { p.LogLevel = "LOUD" }, []string{"LogLevel"}},
		"plain HTTP for real": {func(p *Props) { p.PlainHTTP = true }, []string{"PlainHTTP"}},
		"an unknown sink": {
			func(p *Props) { p.Upstreams = []Upstream{{Sink: "other"}} },
			[]string{"Upstreams[0].Sink", "Upstreams[0]"},
		},
		"an unknown lane": {
			func(p *Props) { p.Upstreams = []Upstream{{Lane: flight.Lane("fast")}} },
			[]string{"Upstreams[0].Lane", "Upstreams[0]"},
		},
		"a pattern without a bus": {
			func(p *Props) { p.Upstreams = []Upstream{{Pattern: &awsevents.EventPattern{}}} },
			[]string{"Upstreams[0]", "Upstreams[0].Pattern"},
		},
		"nothing built": {
			func(p *Props) { p.AssetDir = filepath.Join(p.AssetDir, "nowhere") },
			[]string{"AssetDir"},
		},
		"a script for a program": {
			func(p *Props) { overwrite(t, filepath.Join(p.AssetDir, "dlq", release.Program), "#!/bin/sh\n") },
			[]string{"AssetDir"},
		},
		"a program for another machine": {
			func(p *Props) {
				if err := writeELF(filepath.Join(p.AssetDir, "index", "opensearch", release.Program), 62, ""); err != nil {
					t.Error(err)
				}
			}, []string{"AssetDir"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Props{Config: deployable("lull"), AssetDir: builtPrograms(t)}
			tt.change(p)
			err := p.Validate()
			if err == nil {
				t.Fatal("got no fault")
			}
			var got []string
			for _, f := range Faults(err) {
				if f.Problem == "" || f.Fix == "" {
					t.Errorf("%v says too little", f)
				}
				got = append(got, f.Setting)
			}
			for _, want := range tt.want {
				if !slices.Contains(got, want) {
					t.Errorf("got faults of %v, want one of %s: %v", got, want, err)
				}
			}
		})
	}
}

// Validate reports all faults at once, so that a user need not deploy again to find the next fault.
func TestAllFaultsComeAtOnce(t *testing.T) {
	t.Parallel()
	c := deployable("lull")
	c.Receive.Timeout = 0
	err := (&Props{Config: c, AssetDir: t.TempDir(), PlainHTTP: true}).Validate()
	for _, want := range []string{
		"receive.timeout", "PlainHTTP", "receive/bootstrap", "dlq/bootstrap",
		"index/opensearch/bootstrap): does not exist: run make build; for BuildFunctions, run go get -tool " +
			"github.com/lullhq/lull/functions/index/opensearch; a program of yours that links the kind is index/bootstrap",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in\n%v", want, err)
		}
	}
}

// An emulator runs programs of the host's architecture, even if the template names another
// architecture.
func TestAnEphemeralStackTakesAnyMachinesPrograms(t *testing.T) {
	t.Parallel()
	dir := builtPrograms(t)
	if err := writeELF(filepath.Join(dir, "index", "opensearch", release.Program), 62, ""); err != nil {
		t.Fatal(err)
	}
	p := &Props{Config: deployable("lull"), AssetDir: dir, Ephemeral: true}
	if err := p.Validate(); err != nil {
		t.Errorf("got %v", err)
	}
	overwrite(t, filepath.Join(dir, "index", "opensearch", release.Program), "text")
	if err := p.Validate(); err == nil {
		t.Error("a text passed for a program")
	}
}

func TestAddressesTellDomainsAndCollections(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		domainURL: "es eu-west-1 domain/content",
		"https://search-my-domain-abcdefghijklmnopqrstuvwxyz.us-east-1.es.amazonaws.com/path": "es us-east-1 domain/my-domain",
		"https://search-my-domain-abcdefghijklmnopqrstuvwxyz.aos.us-east-1.on.aws":            "es us-east-1 domain/my-domain",
		"https://0123456789abcdefghij.eu-central-1.aoss.amazonaws.com":                        "aoss eu-central-1 collection/0123456789abcdefghij",
		"https://search.example.org": "  ",
		"https://search-my-domain-abcdefghijklmnopqrstuvwxyz.us-east-1.es.amazonaws.com.evil.org": "  ",
		"https://es.amazonaws.com": "  ",
		"://":                      "  ",
	} {
		service, region, resource := sinkResource(address)
		if got := service + " " + region + " " + resource; got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

// NewLull panics with the faults before it builds anything. The nil scope of this test would cause
// another panic as soon as NewLull used the scope.
func TestNewLullPanicsWithTheFaults(t *testing.T) {
	t.Parallel()
	defer func() {
		err, ok := recover().(error)
		if !ok || !strings.Contains(err.Error(), "run make build") {
			t.Errorf("got %v", err)
		}
	}()
	NewLull(nil, "Lull", &Props{Config: deployable("lull"), AssetDir: t.TempDir()})
}

// Names that Validate accepts are short enough for every service.
func TestTheLongestNamesFit(t *testing.T) {
	t.Parallel()
	c := deployable(strings.Repeat("a", 32))
	longest := strings.Repeat("b", 23)
	renameSink(c, longest)
	if err := (&Props{Config: c, AssetDir: builtPrograms(t)}).Validate(); err != nil {
		t.Fatal(err)
	}
	n := names.Of(c)
	for name, limit := range map[string]int{
		n.Function(longest, names.Receive): 64, n.StateMachine(longest, config.FlightStandard): 80,
		n.Queue(longest, flight.Live): 80, n.DeadQueue(longest): 80, n.FirstRule(longest): 64,
		n.Function(longest, names.Prune): 64, n.Table(): 255,
		n.Bucket("111122223333", "ap-southeast-1"): 63,
		n.Role(Publisher, "ap-southeast-1"):        64, n.StateMachineLog(longest): 512, n.Dashboard(): 255,
		n.Alarm(longest, "blocked-by-unknown"): 255,
	} {
		if len(name) > limit {
			t.Errorf("%s has %d characters, at most %d are allowed", name, len(name), limit)
		}
	}
	renameSink(c, longest+"b")
	if err := (&Props{Config: c, AssetDir: builtPrograms(t)}).Validate(); err == nil {
		t.Error("a name of 65 characters passed")
	}
}

func renameSink(c *config.Config, to string) {
	c.Sinks = map[string]config.Sink{to: c.Sinks["search"]}
	c.DefaultSink = to
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Error(err)
	}
}

// arnOnly is a topic of which only the ARN is known.
type arnOnly struct {
	awssns.ITopic
	arn string
}

func (a arnOnly) TopicArn() *string { return &a.arn }

// fannedOut gives the collection content two sinks.
func fannedOut(c *config.Config) {
	c.Sinks["archive"] = c.Sinks["search"]
	c.DefaultSink, c.DefaultCollection, c.Queues.Elsewhere = "search", "content", ""
	c.Collections["content"] = config.Collection{Sinks: []string{"search", "archive"}}
	s := c.Sinks["archive"]
	s.Index = "archive-{collection}"
	c.Sinks["archive"] = s
	c.Complete()
}

// This test is not parallel, because CDK's runtime takes one call at a time.
func TestADirectSenderCannotReachSeveralSinks(t *testing.T) {
	stackOf(t, plainStack) // starts the runtime
	p := &Props{
		Config: deployable("lull"), AssetDir: builtPrograms(t),
		Upstreams: []Upstream{{Sender: awsiam.NewAccountPrincipal("444455556666")}},
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	fannedOut(p.Config)
	if faults := Faults(p.Validate()); len(faults) != 1 || faults[0].Setting != "Upstreams[0].Sink" ||
		!strings.Contains(faults[0].Fix, "topic") {
		t.Errorf("got %v, want a fault of the sender that names the remedy", faults)
	}
}

func TestTopicsThatContradictTheSettingsAreNamed(t *testing.T) {
	t.Parallel()
	const other = topicARN + "s"
	topic := func(sink string) Upstream { return Upstream{Sink: sink, Topic: arnOnly{arn: topicARN}} }
	match := func(m ...source.Match) func(*config.Config) {
		return func(c *config.Config) {
			s := c.Sources[c.DefaultSource]
			s.Match = m
			c.Sources[c.DefaultSource] = s
		}
	}
	for name, tt := range map[string]struct {
		change    func(*config.Config)
		upstreams []Upstream
		want      string // the setting with a fault
		raw       bool   // whether the first topic has raw delivery
	}{
		"no rule":          {func(*config.Config) {}, []Upstream{topic("search")}, "", true},
		"a rule":           {match(source.Match{Topic: topicARN}), []Upstream{topic("search")}, "", false},
		"of another topic": {match(source.Match{Topic: other}), []Upstream{topic("search")}, "", true},
		"by choice": {
			func(*config.Config) {},
			[]Upstream{{Topic: arnOnly{arn: "${Token[1]}"}, Envelope: true}},
			"",
			false,
		},
		"a rule that never holds": {
			match(source.Match{Topic: topicARN, Named: true}),
			[]Upstream{topic("search")},
			"sources.native.match[0]",
			false,
		},
		"two sinks":                   {func(*config.Config) {}, []Upstream{topic("search"), topic("archive")}, "queues.elsewhere", true},
		"two sinks of one collection": {fannedOut, []Upstream{topic("search")}, "", true},
		"two sinks of one collection that do not skip": {
			func(c *config.Config) { fannedOut(c); c.Queues.Elsewhere = config.ElsewhereDeadLetter },
			[]Upstream{topic("archive")},
			"queues.elsewhere",
			true,
		},
		"two sinks that skip": {
			func(c *config.Config) { c.Queues.Elsewhere = config.ElsewhereSkip },
			[]Upstream{topic("search"), topic("archive")},
			"",
			true,
		},
		"two sinks with sources of their own": {
			match(source.Match{Sink: "archive"}),
			[]Upstream{topic("search"), topic("archive")},
			"",
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Props{Config: deployable("lull"), Upstreams: tt.upstreams}
			tt.change(p.Config)
			var fs faultList
			p.checkTopics(&fs)
			var got []string
			for _, f := range Faults(errors.Join(fs...)) {
				got = append(got, f.Setting)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, want %q", got, tt.want)
			}
			if raw := !p.Upstreams[0].enveloped(p.Config); raw != tt.raw {
				t.Errorf("raw delivery is %t, want %t", raw, tt.raw)
			}
		})
	}
}
