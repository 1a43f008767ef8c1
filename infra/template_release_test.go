// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/sink/opensearch"
	"github.com/lullhq/lull/source"
)

// filled is a template with values for its parameters. It evaluates the template as CloudFormation
// does.
type filled struct {
	parameters map[string]any
	conditions map[string]any
}

type nothing struct{}

// as converts a value of a template, which is JSON. It returns the zero value for another type; the
// test then fails at the use of the value.
func as[T any](v any) T {
	t, _ := v.(T)
	return t
}

func (f filled) value(v any) any {
	switch v := v.(type) {
	case []any:
		var out []any
		for _, item := range v {
			if got := f.value(item); got != any(nothing{}) {
				out = append(out, got)
			}
		}
		return out
	case map[string]any:
		if got, ok := f.function(v); ok {
			return got
		}
		out := make(map[string]any)
		for name, item := range v {
			if got := f.value(item); got != any(nothing{}) {
				out[name] = got
			}
		}
		return out
	}
	return v
}

// function evaluates a CloudFormation function. It returns false if only AWS can evaluate it.
func (f filled) function(v map[string]any) (any, bool) {
	pair := func(name string) []any { list, _ := v[name].([]any); return list }
	switch {
	case v["Ref"] == "AWS::NoValue":
		return nothing{}, true
	case v["Ref"] != nil:
		p, ok := f.parameters[as[string](v["Ref"])]
		return p, ok
	case v["Fn::If"] != nil:
		if args := pair("Fn::If"); f.value(f.conditions[as[string](args[0])]) == true {
			return f.value(args[1]), true
		} else {
			return f.value(args[2]), true
		}
	case v["Fn::Equals"] != nil:
		args, _ := f.value(pair("Fn::Equals")).([]any)
		return reflect.DeepEqual(args[0], args[1]), true
	case v["Fn::Not"] != nil:
		return f.value(pair("Fn::Not")[0]) != true, true
	case v["Fn::And"] != nil:
		return f.value(pair("Fn::And")[0]) == true && f.value(pair("Fn::And")[1]) == true, true
	case v["Fn::Join"] != nil: // only if all items are texts, because CDK joins texts in the same way
		args := pair("Fn::Join")
		list, ok := f.value(args[1]).([]any)
		var texts []string
		for _, item := range list {
			text, isText := item.(string)
			ok = ok && isText
			texts = append(texts, text)
		}
		if !ok {
			return map[string]any{"Fn::Join": []any{args[0], list}}, true
		}
		return strings.Join(texts, as[string](args[0])), true
	case v["Fn::Select"] != nil:
		args := pair("Fn::Select")
		n, ok := args[0].(float64)
		list, split := f.value(args[1]).([]any)
		if !ok || !split {
			return nil, false
		}
		return list[int(n)], true
	case v["Fn::Split"] != nil:
		args := pair("Fn::Split")
		text, ok := f.value(args[1]).(string)
		if !ok {
			return nil, false
		}
		var parts []any
		for part := range strings.SplitSeq(text, as[string](args[0])) {
			parts = append(parts, part)
		}
		return parts, true
	case v["Fn::Sub"] != nil:
		text, ok := v["Fn::Sub"].(string)
		if !ok {
			text = as[string](pair("Fn::Sub")[0])
			for name, value := range as[map[string]any](pair("Fn::Sub")[1]) {
				text = strings.ReplaceAll(text, "${"+name+"}", as[string](f.value(value)))
			}
		}
		for name, value := range f.parameters {
			if s, ok := value.(string); ok {
				text = strings.ReplaceAll(text, "${"+name+"}", s)
			}
		}
		return strings.ReplaceAll(text, "${!", "${"), true
	}
	return nil, false
}

// resources returns the resources whose condition holds, with their values.
func (f filled) resources(of map[string]any) map[string]any {
	out := make(map[string]any)
	for name, v := range of {
		r, _ := v.(map[string]any)
		if c, ok := r["Condition"].(string); ok && f.value(f.conditions[c]) != true {
			continue
		}
		got, _ := f.value(r).(map[string]any)
		delete(got, "Condition")
		delete(got, "Metadata")
		out[name] = got
	}
	return out
}

const (
	ownTopic      = "arn:aws:sns:eu-west-1:111122223333:published"
	ownAlarms     = "arn:aws:sns:eu-west-1:111122223333:alarms"
	ownDomain     = "arn:aws:es:eu-west-1:111122223333:domain/content"
	ownCollection = "arn:aws:aoss:eu-west-1:111122223333:collection/abcdefghij"
	ownSecret     = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:search-AbCdEf"
)

// For any parameters, the template makes the same stack as the construct with the same settings,
// and its functions read those settings.
func TestTheTemplateOfAReleaseIsTheConstructsStack(t *testing.T) {
	stackOf(t, plainStack) // starts the runtime
	text, err := Template("v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 1_000_000 {
		t.Errorf("the template has %d bytes: CloudFormation takes 1 MB", len(text))
	}
	for name, tt := range map[string]struct {
		parameters map[string]any
		set        func(*Props, awscdk.Stack)
	}{
		"a sink without credentials": {parameters: map[string]any{"Auth": "none"}},
		"a domain and a topic": {
			map[string]any{"SinkArn": ownDomain, "Topic": ownTopic},
			func(p *Props, s awscdk.Stack) {
				p.authenticate(config.Auth{Kind: config.AuthSigV4, Service: "es"}, ownDomain)
				topic := awssns.Topic_FromTopicArn(s, jsii.String("Topic"), jsii.String(ownTopic))
				p.Upstreams = []Upstream{{Topic: topic}}
			},
		},
		"a topic whose envelope a match rule reads": {
			map[string]any{
				"Auth": "none", "Topic": ownTopic, "TopicEnvelope": "true",
				"Sources": `{"native":{"kind":"native","match":[{"topic":"` + ownTopic + `"}]}}`,
			},
			func(p *Props, s awscdk.Stack) {
				p.Config.Sources = map[string]config.Source{
					"native": {Kind: "native", Match: []source.Match{{Topic: ownTopic}}},
				}
				topic := awssns.Topic_FromTopicArn(s, jsii.String("Topic"), jsii.String(ownTopic))
				p.Upstreams = []Upstream{{Topic: topic}}
			},
		},
		"a collection in a VPC": {
			map[string]any{
				"SinkArn": ownCollection, "Service": "aoss", "SubnetIds": []any{"subnet-1", "subnet-2"},
				"SecurityGroupIds": []any{"sg-1"}, "Architecture": "x86_64",
			},
			func(p *Props, _ awscdk.Stack) {
				p.authenticate(config.Auth{Kind: config.AuthSigV4, Service: "aoss"}, ownCollection)
				s := p.Config.Sinks[templateSink]
				s.Options = opensearch.Settings{Serverless: true}
				p.Config.Sinks[templateSink] = s
				p.Vpc = &Vpc{SubnetIDs: []string{"subnet-1", "subnet-2"}, SecurityGroupIDs: []string{"sg-1"}}
				p.Architecture = X86_64
			},
		},
		"Elasticsearch with an API key": {
			map[string]any{"Kind": "elasticsearch", "Auth": "key", "SecretArn": ownSecret},
			func(p *Props, _ awscdk.Stack) {
				p.authenticate(config.Auth{Kind: config.AuthKey, SecretARN: ownSecret}, "")
				s := p.Config.Sinks[templateSink]
				s.Kind = "elasticsearch"
				p.Config.Sinks[templateSink] = s
			},
		},
		"a password, alarms and everything else": {
			map[string]any{
				"Auth": "basic", "SecretArn": ownSecret, "AlarmTopic": ownAlarms,
				"Topic": ownTopic, "SubnetIds": []any{"subnet-1"}, "SecurityGroupIds": []any{"sg-1"},
			},
			func(p *Props, s awscdk.Stack) {
				p.authenticate(config.Auth{Kind: config.AuthBasic, SecretARN: ownSecret}, "")
				p.AlarmTopic = awssns.Topic_FromTopicArn(s, jsii.String("AlarmTopic"), jsii.String(ownAlarms))
				topic := awssns.Topic_FromTopicArn(s, jsii.String("Topic"), jsii.String(ownTopic))
				p.Upstreams = []Upstream{{Topic: topic}}
				p.Vpc = &Vpc{SubnetIDs: []string{"subnet-1"}, SecurityGroupIDs: []string{"sg-1"}}
			},
		},
	} {
		var template map[string]any
		if err := json.Unmarshal(text, &template); err != nil {
			t.Fatal(err)
		}
		f := filled{parameters: make(map[string]any), conditions: as[map[string]any](template["Conditions"])}
		for name, p := range as[map[string]any](template["Parameters"]) {
			f.parameters[name] = as[map[string]any](p)["Default"]
			if as[map[string]any](p)["Type"] == "CommaDelimitedList" {
				f.parameters[name] = []any{}
			}
		}
		f.parameters["SinkUrl"], f.parameters["CodeBucket"] = "https://search.example.org", "code"
		f.parameters["Stack"], f.parameters["CodePrefix"] = "news", "v0.1.0/"
		for name, v := range tt.parameters {
			f.parameters[name] = v
		}
		got := f.resources(as[map[string]any](template["Resources"]))

		f.parameters["FreshnessAlarm"] = 90000.0
		late := f.resources(as[map[string]any](template["Resources"]))
		if alarm, _ := late["LullSinksearchAlarmfreshness75B41D6E"].(map[string]any); as[map[string]any](alarm["Properties"])["Threshold"] != 90000.0 {
			t.Errorf("%s: got the alarm %v, want the threshold 90000", name, alarm)
		}

		direct, settings := directStack(t, tt.set)
		want := filled{}.resources(as[map[string]any](direct["Resources"]))
		compare(t, name, got, want, settings)
	}
	if _, err := Template("latest"); err == nil {
		t.Error("a version called latest passed")
	}
}

// directStack makes the stack with the construct, from settings that have the parameters' values.
func directStack(t *testing.T, set func(*Props, awscdk.Stack)) (template map[string]any, settings config.Config) {
	t.Helper()
	template, err := templateStack(t.TempDir(), "v0.1.0", option{name: "direct", set: func(p *Props, s awscdk.Stack) {
		p.Config.Stack = "news"
		if set != nil {
			set(p, s)
		}
		p.Config.Complete()
		settings = *p.Config
	}})
	if err != nil {
		t.Fatal(err)
	}
	return template, settings
}

func compare(t *testing.T, name string, got, want map[string]any, settings config.Config) {
	t.Helper()
	for id, w := range want {
		g, ok := got[id].(map[string]any)
		if !ok {
			t.Errorf("%s: %s is missing", name, id)
			continue
		}
		if g["Type"] == "AWS::Lambda::Function" {
			checkFunction(
				t,
				name,
				as[map[string]any](g["Properties"]),
				as[map[string]any](as[map[string]any](w)["Properties"]),
				settings,
			)
		}
		for _, d := range differences(id, g, w) {
			t.Errorf("%s: %s", name, d)
		}
		delete(got, id)
	}
	for id := range got {
		t.Errorf("%s: the template also has %s", name, id)
	}
}

// differences lists the places in which two values differ. The order in a list does not matter.
func differences(at string, got, want any) (all []string) {
	g, isMap := got.(map[string]any)
	w, alike := want.(map[string]any)
	if isMap && alike {
		for name := range w {
			all = append(all, differences(at+"."+name, g[name], w[name])...)
		}
		for name := range g {
			if _, ok := w[name]; !ok {
				all = append(all, at+"."+name+" should not be there")
			}
		}
		return all
	}
	a, isList := got.([]any)
	b, alike := want.([]any)
	if isList && alike && len(a) == len(b) {
		byText := func(x, y any) int {
			s, _ := json.Marshal(x)
			t, _ := json.Marshal(y)
			return strings.Compare(string(s), string(t))
		}
		slices.SortFunc(a, byText)
		slices.SortFunc(b, byText)
		for i := range a {
			all = append(all, differences(fmt.Sprintf("%s.%d", at, i), a[i], b[i])...)
		}
		return all
	}
	if !reflect.DeepEqual(got, want) {
		return []string{fmt.Sprintf("%s: got %v, want %v", at, got, want)}
	}
	return nil
}

// checkFunction checks the properties that only the template's functions have, and removes them.
func checkFunction(t *testing.T, name string, got, want map[string]any, settings config.Config) {
	t.Helper()
	code := as[map[string]any](got["Code"])
	arch := as[string](as[[]any](got["Architectures"])[0])
	if key, _ := code["S3Key"].(string); code["S3Bucket"] != "code" ||
		!strings.HasPrefix(key, "v0.1.0/lull-") || !strings.HasSuffix(key, "_v0.1.0_"+arch+".zip") ||
		strings.Contains(key, "index") && !strings.Contains(key, "index-"+settings.Sinks[templateSink].Kind+"_") {
		t.Errorf("%s: got code %v", name, code)
	}
	delete(got, "Code")
	delete(want, "Code")
	variables := as[map[string]any](as[map[string]any](got["Environment"])["Variables"])
	text, _ := variables[lambda.EnvSettings].(string)
	size := 0
	for name, v := range variables {
		s, _ := v.(string)
		size += len(name) + len(s)
	}
	// All functions of a sink compute the same lease, although only index links the sink's kind.
	unlinked := strings.ReplaceAll(text, `"kind":"`+settings.Sinks[templateSink].Kind+`"`, `"kind":"elsewhere"`)
	if c, err := config.ParseDeployed([]byte(unlinked)); err != nil {
		t.Errorf("%s: a function without the kind refuses %s: %v", name, text, err)
	} else if got, want := c.Lease(templateSink), settings.Lease(templateSink); got != want {
		t.Errorf("%s: a function without the kind reckons with a lease of %s, want %s", name, got, want)
	}
	if c, err := config.ParseDeployed([]byte(text)); err != nil {
		t.Errorf("%s: the function refuses %s: %v", name, text, err)
	} else {
		a, _ := json.Marshal(c.Resolve())
		b, _ := json.Marshal(settings.Resolve())
		if string(a) != string(b) {
			t.Errorf("%s: the function reads\n%s\nwant\n%s", name, a, b)
		}
	}
	variables[lambda.EnvSettings] = forSettings
}

// If the construct refuses a value, the template does not deploy something else instead.
// CloudFormation or Lambda also refuses the value.
func TestTheTemplateTakesNoParameterThatTheConstructRefuses(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string][]string{
		"SinkArn": {
			"arn:aws:es:*:*:domain/*", "arn:aws:es:eu-west-1:111122223333:domain/*", ownDomain + "/*",
			"arn:aws:es:eu-west-1:111122223333:domain/content/_all",
		},
		"SecretArn": {
			"arn:aws:secretsmanager:*", "arn:aws:secretsmanager:eu-west-1:111122223333:secret:*",
			"arn:aws:secretsmanager:eu-west-1:111122223333:*",
		},
	} {
		pattern := regexp.MustCompile(as[string](as[map[string]any](templateParameters[name])["AllowedPattern"]))
		for _, value := range append(refused, "*") {
			if pattern.MatchString(value) {
				t.Errorf("%s takes %s", name, value)
			}
		}
		for _, value := range map[string][]string{"SinkArn": {"", ownDomain, ownCollection}, "SecretArn": {"", ownSecret}}[name] {
			if !pattern.MatchString(value) {
				t.Errorf("%s refuses %q", name, value)
			}
		}
	}
	if as[map[string]any](templateParameters["FreshnessAlarm"])["MinValue"] != 0 {
		t.Error("FreshnessAlarm takes a threshold below 0")
	}
	subnets, groups := []any{"subnet-1"}, []any{"sg-1"}
	for _, tt := range []struct {
		subnets, groups []any
		want            bool
	}{{want: false}, {subnets, groups, true}, {subnets, nil, true}, {nil, groups, true}} {
		f := filled{parameters: map[string]any{"SubnetIds": tt.subnets, "SecurityGroupIds": tt.groups}}
		i := slices.IndexFunc(templateOptions, func(o option) bool { return o.name == "vpc" })
		if got := f.value(templateOptions[i].when); got != tt.want {
			t.Errorf("subnets %v and groups %v: in a VPC is %v, want %v", tt.subnets, tt.groups, got, tt.want)
		}
	}
}
