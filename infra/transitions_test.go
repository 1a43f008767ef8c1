// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/transition"
)

// state is a stack that a deploy may start from or lead to: plainStack with one change.
type state struct {
	settings string // a file below testdata; empty for plainStack's settings
	change   func(stack awscdk.Stack, p *Props)
	region   string // empty if the stack may be in any region
}

// states are the stacks of docs/transitions.md. Unless noted, they have plainStack's names.
var states = map[string]state{
	"every setting, old": {settings: "settings-old.yaml"},
	"every setting, new": {settings: "settings-new.yaml"},
	"another sink": {change: func(_ awscdk.Stack, p *Props) {
		p.Config.Sinks["archive"] = p.Config.Sinks["search"]
	}},
	"Standard flights": {
		change: func(_ awscdk.Stack, p *Props) {
			p.Config.Flight.Kind, p.Config.Queues.Live.MaxConcurrency = config.FlightStandard, 20
		},
	},
	"an existing table": {change: func(_ awscdk.Stack, p *Props) { p.Config.Table.Name = "content-rows" }},
	"an existing queue": {change: func(_ awscdk.Stack, p *Props) {
		s := p.Config.Sinks["search"]
		s.LiveQueue = "published"
		p.Config.Sinks["search"] = s
	}},
	"another name": {change: func(_ awscdk.Stack, p *Props) { p.Config.Stack = "other" }},
	"a part": {change: func(_ awscdk.Stack, p *Props) {
		p.Config.Stack, p.Config.Parts = "part-1", config.Parts{Of: 2, This: 1}
	}},
	"more parts": {change: func(_ awscdk.Stack, p *Props) {
		p.Config.Stack, p.Config.Parts = "part-1", config.Parts{Of: 3, This: 1}
	}},
	"every option": {change: func(s awscdk.Stack, p *Props) {
		p.IndexConcurrency, p.LogLevel = 7, "DEBUG"
		p.Warm, p.Protect, p.Architecture = Throughput{Reads: 24_000, Writes: 8_000}, true, ARM64
		p.ReadKeyARNs = []string{readKeyARN}
		p.Vpc = &Vpc{SubnetIDs: []string{"subnet-a"}, SecurityGroupIDs: []string{"sg-a"}}
		p.Operators = awsiam.NewAccountPrincipal("444455556666")
		p.AlarmTopic = awssns.Topic_FromTopicArn(s, jsii.String("Alarms"), jsii.String(alarmARN))
	}},
	"a pipe":      {change: pipes(Kafka{Cluster: mskARN, Topic: "pages"})},
	"other pipe":  {change: pipes(Kafka{Cluster: mskARN, Topic: "news"})},
	"its secret":  {change: pipes(Kafka{Cluster: mskARN, Topic: "pages", SecretARN: kafkaARN, Login: SCRAM512})},
	"one bus":     {change: follows("cms")},
	"another bus": {change: follows("shop")},
	"no key":      {region: "eu-west-1"},
	"a key":       {region: "eu-west-1", change: encrypted("11111111")},
	"another key": {region: "eu-west-1", change: encrypted("22222222")},
}

func pipes(k Kafka) func(awscdk.Stack, *Props) {
	return func(_ awscdk.Stack, p *Props) {
		p.Upstreams = []Upstream{{Pipe: &Pipe{Name: "pages", Kafka: &k}}}
	}
}

func follows(bus string) func(awscdk.Stack, *Props) {
	return func(s awscdk.Stack, p *Props) {
		p.Upstreams = []Upstream{{
			Bus:     awsevents.EventBus_FromEventBusName(s, jsii.String("Bus"), jsii.String(bus)),
			Pattern: &awsevents.EventPattern{Source: jsii.Strings("cms")},
		}}
	}
}

func encrypted(id string) func(awscdk.Stack, *Props) {
	return func(s awscdk.Stack, p *Props) {
		p.Key = awskms.Key_FromKeyArn(s, jsii.String("Key"),
			jsii.String("arn:aws:kms:eu-west-1:111122223333:key/"+id+"-2222-3333-4444-555555555555"))
	}
}

// stateSettings are the settings of each state.
var stateSettings = make(map[string]*config.Config)

// synthStates synthesises every state in its own app, because the ids of some resources contain the
// id of their stack.
func synthStates() (map[string]*template, error) {
	made := make(map[string]*template)
	for i, name := range slices.Sorted(maps.Keys(states)) {
		of, p := states[name], plainProps()
		if of.settings != "" {
			c, err := LoadSettings(filepath.Join("testdata", of.settings))
			if err != nil {
				return nil, err
			}
			p.Config = c
		}
		out := filepath.Join(folder, fmt.Sprint("state", i))
		app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(out), AnalyticsReporting: jsii.Bool(false)})
		var env *awscdk.Environment
		if of.region != "" {
			env = &awscdk.Environment{Account: jsii.String("111122223333"), Region: jsii.String(of.region)}
		}
		stack := awscdk.NewStack(app, jsii.String(plainStack), &awscdk.StackProps{Env: env})
		if of.change != nil {
			of.change(stack, p)
		}
		p.Config.Complete()
		NewLull(stack, "Lull", p)
		judge(app)
		app.Synth(nil)
		stateSettings[name], made[name] = p.Config, &template{}
		if err := readJSON(filepath.Join(out, plainStack+".template.json"), made[name]); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// stateOf returns a state, or a stack of another test, in the form that package transition reads.
func stateOf(t *testing.T, name string) transition.Template {
	t.Helper()
	all := make(map[string]transition.Resource)
	for id, r := range stackOf(t, name).Resources {
		all[id] = transition.Resource{
			Type: r.Type, Properties: r.Properties,
			DeletionPolicy: r.DeletionPolicy, UpdateReplacePolicy: r.UpdateReplacePolicy,
		}
	}
	return transition.Template{Resources: all}
}

// deploys lists what a deploy does with each resource. It leaves out the resources that every
// deploy replaces, such as versions of functions.
func deploys(t *testing.T, from, to string) map[transition.Action][]string {
	t.Helper()
	did := make(map[transition.Action][]string)
	for _, c := range transition.Templates(stateOf(t, from), stateOf(t, to)) {
		if c.Type != "AWS::Lambda::Version" {
			did[c.Action] = append(did[c.Action], c.Type+" "+c.ID+" "+c.Name)
		}
	}
	return did
}

// Each type of resource in a stack must have a schema. Without a schema, the comparison would treat
// every change as an update in place.
func TestEveryTypeOfResourceHasItsSchema(t *testing.T) {
	t.Parallel()
	for _, name := range []string{plainStack, fullStack, serverlessStack, standardStack, stateStack} {
		for id, r := range stackOf(t, name).Resources {
			if _, ok := transition.Schemas()[r.Type]; !ok {
				t.Errorf("%s is of the type %s: add it to internal/operator/transition/schemas.py", id, r.Type)
			}
		}
	}
}

// A property that can only be set at creation never changes while the resource keeps its name,
// because CloudFormation refuses such a deploy. For the same reason, no new resource has the name
// of a resource that the same deploy removes.
func TestCreateOnlyPropertiesNeverChangeUnderAFixedName(t *testing.T) {
	t.Parallel()
	all := slices.Concat(
		slices.Sorted(maps.Keys(states)),
		[]string{plainStack, fullStack, serverlessStack, standardStack},
	)
	for _, from := range all {
		for _, to := range all {
			did := deploys(t, from, to)
			if bad := slices.Concat(did[transition.Refused], did[transition.Lost]); len(bad) > 0 {
				t.Errorf("from %s to %s: %v", from, to, bad)
			}
		}
	}
}

// Each transition of docs/transitions.md, from a stack with the defaults, does what the page says.
func TestTransitionsDoWhatTheirPageSays(t *testing.T) {
	t.Parallel()
	inPlace := []transition.Action{transition.Updated}
	for name, tt := range map[string]struct {
		from, to string
		want     []transition.Action
		only     []string // the types of the resources that are created, replaced or removed
	}{
		"every option but a VPC and a key": {plainStack, "every option", inPlace, nil},
		"flight.kind to standard":          {plainStack, "Standard flights", inPlace, nil},
		"flight.kind to express":           {"Standard flights", plainStack, inPlace, nil},
		"to a key":                         {"no key", "a key", inPlace, nil},
		"to another key":                   {"a key", "another key", inPlace, nil},
		"to no key":                        {"a key", "no key", inPlace, nil},
		"a pipe": {
			plainStack, "a pipe",
			[]transition.Action{transition.Created, transition.Updated},
			[]string{"AWS::Pipes::Pipe", "AWS::IAM::Role", "AWS::CloudWatch::Alarm"},
		},
		"a pipe with a secret": {"a pipe", "its secret", inPlace, nil},
		"a bus": {
			plainStack, "one bus",
			[]transition.Action{transition.Created, transition.Updated},
			[]string{"AWS::Events::Rule"},
		},
		"another bus": {
			"one bus", "another bus",
			[]transition.Action{transition.Replaced, transition.Updated},
			[]string{"AWS::Events::Rule"},
		},
		"no bus": {
			"one bus", plainStack,
			[]transition.Action{transition.Removed, transition.Updated},
			[]string{"AWS::Events::Rule"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			did := deploys(t, tt.from, tt.to)
			if got := slices.Sorted(maps.Keys(did)); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v: %v", got, tt.want, did)
			}
			for _, a := range []transition.Action{transition.Created, transition.Replaced, transition.Removed} {
				for _, r := range did[a] {
					if !slices.ContainsFunc(tt.only, func(kind string) bool { return r[:len(kind)] == kind }) {
						t.Errorf("%s is %s", r, a)
					}
				}
			}
		})
	}
}

// The rules that `lull config diff` uses agree with the templates.
func TestSettingsRulesSayWhatTheTemplatesSay(t *testing.T) {
	t.Parallel()
	stackOf(t, plainStack) // this call also creates the settings
	settings := maps.Clone(stateSettings)
	settings[plainStack] = deployable(plainStack)
	all := []string{
		plainStack, "Standard flights", "another sink", "another name", "every setting, old", "every setting, new",
		"an existing table", "an existing queue", "a part", "more parts",
	}
	for _, from := range all {
		for _, to := range all {
			want, got := make(map[transition.Action]bool), make(map[transition.Action]bool)
			for a := range deploys(t, from, to) {
				want[a] = a != transition.Updated
			}
			for _, f := range transition.Settings(settings[from], settings[to]) {
				got[f.Stack] = f.Stack != transition.Updated
			}
			for _, m := range []map[transition.Action]bool{want, got} {
				maps.DeleteFunc(m, func(_ transition.Action, is bool) bool { return !is })
			}
			// In a stack with another name, every resource has another name, too.
			if !maps.Equal(got, want) && !(got[transition.Replaced] && want[transition.Replaced]) {
				t.Errorf(
					"from %s to %s: the rules say %v, the templates %v",
					from,
					to,
					slices.Sorted(maps.Keys(got)),
					deploys(t, from, to),
				)
			}
		}
	}
}

// A setting that no test changes might replace a resource without notice.
func TestTransitionsChangeEverySetting(t *testing.T) {
	t.Parallel()
	stackOf(t, plainStack) // this call also creates the settings
	never := []string{
		"stack",                  // the state "another name" changes it
		"parts.of", "parts.this", // the states "a part" and "more parts" change them
		"table.name", "sinks.<name>.liveQueue", // the states with an existing table or queue change them
		// only one kind can be deployed
		"sinks.<name>.kind",
		"sinks.<name>.versions",                                                                  // follows from the kind
		"sinks.<name>.auth.userEnv", "sinks.<name>.auth.passwordEnv", "sinks.<name>.auth.keyEnv", // cannot be deployed
		"collections.<name>.enrich.headers.env",
		"sources.<name>.fetch.headers.env", // cannot be deployed
		// no resource depends on them
		"collections.<name>.verify.every", "collections.<name>.verify.requests", "collections.<name>.verify.maxRemovals",
	}
	changed := make(map[string]bool)
	for _, c := range config.Changes(stateSettings["every setting, old"], stateSettings["every setting, new"]) {
		changed[c.Generic] = true
	}
	for _, s := range config.Settings() {
		kind := stateSettings["every setting, old"].Sinks["search"].Kind
		if !changed[s.Name] && !slices.Contains(never, s.Name) && kind == "opensearch" {
			t.Errorf("%s has the same value in settings-old.yaml and settings-new.yaml", s.Name)
		}
	}
}

// `cdk import` identifies a resource by the property that the resource's schema names. It supports
// only types that CloudFormation can read and list: REVIEW W1.
func TestWhatIsImportedHasTheIdentifierOfItsSchema(t *testing.T) {
	t.Parallel()
	for id, r := range stackOf(t, stateStack).Resources {
		s := transition.Schemas()[r.Type]
		if got := slices.Sorted(maps.Keys(identifiers[id])); !reflect.DeepEqual(got, s.Identifier) ||
			!s.Importable {
			t.Errorf("%s is identified by %v, want %v; importable: %t", id, got, s.Identifier, s.Importable)
		}
	}
}

// Some limits need no fault, because settings cannot reach them. Even with the largest number of
// sinks, the outputs and the environment of a function stay below the limits of AWS.
func TestNoSettingReachesALimitWithoutAFault(t *testing.T) {
	t.Parallel()
	one, two := stackOf(t, plainStack), stackOf(t, "another sink")
	sinks := (maxResources - stackResources) / sinkResources
	if n := len(one.Outputs) + (sinks-1)*(len(two.Outputs)-len(one.Outputs)); n > 200 {
		t.Errorf("%d sinks have %d outputs: CloudFormation takes 200", sinks, n)
	}
	const longest = 256 // a queue's URL, an ARN or a name, in any region
	for id, r := range stackOf(t, fullStack).all("AWS::Lambda::Function") {
		size := 0
		for name := range fields(dig(r.Properties, "Environment", "Variables")) {
			size += len(name) + longest
		}
		if size > 4096 {
			t.Errorf("%s may have an environment of %d bytes: Lambda takes 4096", id, size)
		}
	}
}
