// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/reach"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink/opensearch"
)

// templateSink is the name of the only sink of the template.
const templateSink = "search"

// templateKind is the default kind of the template's sink; a parameter may name another kind. All
// stacks from which the template is merged have this kind, because the resources are the same for
// every kind.
const templateKind = opensearch.Name

// Placeholders for parameters, used if the construct requires a text. finish replaces them. No
// other text of a template contains them.
const (
	forStack      = "lull-stack-parameter"
	forDomain     = "arn:aws:es:eu-west-1:111122223333:domain/lull-sink-parameter"
	forCollection = "arn:aws:aoss:eu-west-1:111122223333:collection/lullsinkparameter"
	forSecret     = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:lull-secret-parameter" //nolint:gosec // an ARN
	forSettings   = "lull-settings-parameter"
)

var placeholders = strings.NewReplacer(
	"${", "${!", // escapes a text that only looks like a parameter
	forStack, "${Stack}", forDomain, "${SinkArn}", forCollection, "${SinkArn}", forSecret, "${SecretArn}",
)

// templateSettings are the settings that the template gives its functions. All other settings have
// the defaults of the release, and the template is made with the same defaults.
const templateSettings = `{"stack":"${Stack}","sources":${Sources},"collections":${Collections},"sinks":{"` +
	templateSink + `":{"kind":"${Kind}","url":"${SinkUrl}","index":"${Index}",${Serverless}` +
	`"versions":${Versions},"applyDelay":"${ApplyDelay}","auth":${AuthSettings}}}}`

// templateCan returns the capabilities of the sink. A function that does not link the sink's kind
// reads them from the settings, so that all functions compute the same lease.
func templateCan(serverless bool) (versions, applyDelay string) {
	can := config.Sink{Kind: templateKind, Options: opensearch.Settings{Serverless: serverless}}.Capabilities()
	return strconv.FormatBool(can.Versions), setting.FormatDuration(can.ApplyDelay)
}

// templateAuth builds the settings of auth from the parameters.
var templateAuth = either("HasSecret", sub(`{"kind":"${Auth}","secretARN":"${SecretArn}"}`),
	either("IsDomain", `{"kind":"sigv4","service":"es"}`,
		either("IsServerless", `{"kind":"sigv4","service":"aoss"}`, `{"kind":"none"}`)))

// templateParameters are the parameters of the template.
var templateParameters = map[string]any{
	"Stack": parameter("String", "The prefix of every name; like the setting stack", "lull",
		map[string]any{"AllowedPattern": "^[a-z][a-z0-9-]{0,31}$"}),
	"CodeBucket": parameter("String", "The bucket of this region with the functions' zips of the release", nil,
		map[string]any{"AllowedPattern": "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"}),
	"CodePrefix": parameter("String", "The folder of the zips in the bucket: empty, or a path that ends in /", "",
		map[string]any{"AllowedPattern": "^$|^.{1,500}/$"}),
	"Architecture": parameter("String", "arm64 costs a fifth less", "arm64",
		map[string]any{"AllowedValues": []string{"arm64", "x86_64"}}),
	"Kind": parameter("String", "The kind of the sink at SinkUrl", templateKind,
		map[string]any{"AllowedValues": []string{templateKind, "elasticsearch"}}),
	"SinkUrl": parameter("String", "The address of the sink", nil,
		map[string]any{"AllowedPattern": `^https?://[^\s"\\]{1,500}$`}),
	"Index": parameter("String", "The index that documents go to", "lull-{collection}",
		map[string]any{"AllowedPattern": `^[a-z0-9_.{}-]{1,200}$`}),
	"Auth": parameter("String", "How requests are authenticated: sigv4 (OpenSearch) needs SinkArn, basic and "+
		"key (Elasticsearch) need SecretArn", "sigv4",
		map[string]any{"AllowedValues": []string{"none", "basic", "key", "sigv4"}}),
	"Service": parameter("String", "For sigv4: es for a domain, aoss for a serverless collection", "es",
		map[string]any{"AllowedValues": []string{"es", "aoss"}}),
	"SinkArn": parameter("String", "For sigv4: the ARN of the domain or the collection", "",
		map[string]any{"AllowedPattern": "^$|" + reach.Engine.Pattern()}),
	"SecretArn": parameter(
		"String",
		"For basic and key: the ARN of a secret with the fields username and password, "+
			"or with the key",
		"",
		map[string]any{
			"AllowedPattern": `^$|^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]{1,300}$`,
		},
	),
	"Sources": parameter("String", "The setting sources as JSON, on one line", `{"native":{"kind":"native"}}`,
		map[string]any{"AllowedPattern": `^\{.*\}$`, "MaxLength": 1500}),
	"Collections": parameter("String", "The setting collections as JSON, on one line; {} takes any", "{}",
		map[string]any{"AllowedPattern": `^\{.*\}$`, "MaxLength": 1500}),
	"Topic": parameter("String", "An SNS topic to subscribe to, by ARN", "",
		map[string]any{"AllowedPattern": `^$|^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$`}),
	"TopicEnvelope": parameter(
		"String",
		"true where a match rule of Sources names Topic: the rule reads SNS's envelope",
		"false",
		map[string]any{"AllowedValues": []string{"false", "true"}},
	),
	"AlarmTopic": parameter("String", "An SNS topic that alarms are sent to, by ARN", "",
		map[string]any{"AllowedPattern": `^$|^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$`}),
	"FreshnessAlarm": parameter(
		"Number",
		"The threshold of the alarm freshness in milliseconds, if Collections has a "+
			"longer quiet; 0 for the default settings' promise",
		0,
		map[string]any{"MinValue": 0},
	),
	"SubnetIds": parameter("CommaDelimitedList", "The subnets of index, if only a VPC reaches the sink", "", nil),
	"SecurityGroupIds": parameter("CommaDelimitedList", "The security groups of index, with SubnetIds", "",
		nil),
}

func parameter(kind, description string, otherwise any, more map[string]any) map[string]any {
	p := map[string]any{"Type": kind, "Description": description}
	if otherwise != nil {
		p["Default"] = otherwise
	}
	for name, v := range more {
		p[name] = v
	}
	return p
}

// option is a variant of the stack that the template contains under a condition.
type option struct {
	name, condition string
	when            any
	set             func(*Props, awscdk.Stack)
}

var templateOptions = []option{
	{"topic", "HasTopic", isSet("Topic"), func(p *Props, s awscdk.Stack) {
		topic := awssns.Topic_FromTopicArn(s, jsii.String("Topic"), usedParameter(s, "Topic").ValueAsString())
		p.Upstreams = []Upstream{{Topic: topic}}
	}},
	{"alarms", "HasAlarmTopic", isSet("AlarmTopic"), func(p *Props, s awscdk.Stack) {
		p.AlarmTopic = awssns.Topic_FromTopicArn(s, jsii.String("AlarmTopic"), usedParameter(s, "AlarmTopic").ValueAsString())
	}},
	{
		// The condition holds if either list is set. Lambda refuses a VPC with only one of them.
		// Without this error, index would run outside of the VPC unnoticed.
		"vpc", "HasVpc", not(both(isEmpty("SubnetIds"), isEmpty("SecurityGroupIds"))),
		func(p *Props, s awscdk.Stack) {
			p.Vpc = &Vpc{
				SubnetIDs: listOf(usedParameter(s, "SubnetIds")), SecurityGroupIDs: listOf(usedParameter(s, "SecurityGroupIds")),
			}
		},
	},
	{"secret", "HasSecret", oneOf("Auth", "basic", "key"), func(p *Props, _ awscdk.Stack) {
		p.authenticate(config.Auth{Kind: config.AuthBasic, SecretARN: forSecret}, "")
	}},
	{
		"domain", "IsDomain", both(equals(ref("Auth"), "sigv4"), equals(ref("Service"), "es")),
		func(p *Props, _ awscdk.Stack) {
			p.authenticate(config.Auth{Kind: config.AuthSigV4, Service: "es"}, forDomain)
		},
	},
	{
		"serverless", "IsServerless", both(equals(ref("Auth"), "sigv4"), equals(ref("Service"), "aoss")),
		func(p *Props, _ awscdk.Stack) {
			s := p.Config.Sinks[templateSink]
			s.Options = opensearch.Settings{Serverless: true}
			p.Config.Sinks[templateSink] = s
			p.authenticate(config.Auth{Kind: config.AuthSigV4, Service: "aoss"}, forCollection)
		},
	},
}

// usedParameter creates a parameter to which the construct refers.
func usedParameter(s awscdk.Stack, name string) awscdk.CfnParameter {
	kind, _ := templateParameters[name].(map[string]any)["Type"].(string)
	p := awscdk.NewCfnParameter(s, jsii.String("Parameter"+name), &awscdk.CfnParameterProps{Type: &kind})
	p.OverrideLogicalId(&name)
	return p
}

func listOf(p awscdk.CfnParameter) (ids []string) {
	for _, id := range *p.ValueAsList() {
		ids = append(ids, *id)
	}
	return ids
}

func (p *Props) authenticate(auth config.Auth, arn string) {
	s := p.Config.Sinks[templateSink]
	s.Auth = auth
	p.Config.Sinks[templateSink] = s
	if arn != "" {
		p.SinkARNs = map[string]string{templateSink: arn}
	}
}

// Template returns the template of a release, for users who do not write a CDK app in Go. The
// template describes the stack that NewLull makes, with parameters. The functions' zips are in a
// bucket that a parameter names, and the functions read their settings from the environment.
// Template synthesises the stack of every option, and puts the differences under the option's
// condition. So the template cannot differ from the construct.
func Template(version string) ([]byte, error) {
	if !release.IsVersion(version) {
		return nil, fmt.Errorf(
			"the template is of a release: %q is not a version such as v0.1.0 (LULL_RELEASE)",
			version,
		)
	}
	dir, err := os.MkdirTemp("", "lull-template-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	all := make([]map[string]any, 1+len(templateOptions))
	for i, o := range append([]option{{name: "base"}}, templateOptions...) {
		if all[i], err = templateStack(filepath.Join(dir, o.name), version, o); err != nil {
			return nil, fmt.Errorf("template of %s: %w", o.name, err)
		}
	}
	out, err := copyOf(all[0])
	if err != nil {
		return nil, err
	}
	conditions := map[string]any{
		"HasFreshness": not(equals(ref("FreshnessAlarm"), 0)), "KeepsEnvelope": equals(ref("TopicEnvelope"), "true"),
	}
	for i, o := range templateOptions {
		conditions[o.condition] = o.when
		if err := merge(out, all[0], all[i+1], o.condition, 0); err != nil {
			return nil, fmt.Errorf("option %s of the template: %w", o.name, err)
		}
	}
	out["Conditions"] = conditions
	out["Description"] = "lull " + version + ": debounced indexing"
	return finish(out)
}

// templateStack synthesises the stack with one option. Each option has its own app, because logical
// ids depend on the stack.
func templateStack(dir, version string, o option) (template map[string]any, err error) {
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: &dir, AnalyticsReporting: jsii.Bool(false)})
	stack := awscdk.NewStack(app, jsii.String("lull"), &awscdk.StackProps{
		Synthesizer: awscdk.NewDefaultStackSynthesizer(&awscdk.DefaultStackSynthesizerProps{
			GenerateBootstrapVersionRule: jsii.Bool(false),
		}),
	})
	c := config.Default()
	c.Stack = forStack
	c.Sinks = map[string]config.Sink{
		templateSink: {Kind: templateKind, Index: "lull-{collection}", URL: "https://search.example.org"},
	}
	p := &Props{Config: &c, template: func(of names.Program) awslambda.Code {
		bucket := awss3.Bucket_FromBucketName(stack, jsii.String("Code-"+of.File()), jsii.String("lull-code-parameter"))
		return awslambda.Code_FromBucket(bucket, jsii.String(release.Zip(version, of, "ARCH")), nil)
	}}
	if o.set != nil {
		o.set(p, stack)
	}
	c.Complete()
	if err := p.Validate(); err != nil {
		return nil, err
	}
	NewLull(stack, "Lull", p)
	app.Synth(nil)
	text, err := os.ReadFile(filepath.Join(dir, "lull.template.json"))
	if err == nil {
		err = json.Unmarshal(text, &template)
	}
	unversioned(template)
	return template, err
}

// unversioned makes each alias refer to the newest code. The id of a version would have to change
// with the parameters, which CloudFormation cannot express.
func unversioned(template map[string]any) {
	resources, _ := template["Resources"].(map[string]any)
	for name, v := range resources {
		r, _ := v.(map[string]any)
		properties, _ := r["Properties"].(map[string]any)
		switch r["Type"] {
		case "AWS::Lambda::Version":
			delete(resources, name)
		case "AWS::Lambda::Alias":
			properties["FunctionVersion"] = "$LATEST"
		}
	}
}

// finish replaces placeholders with references to parameters, adds the parameters and rules, and
// returns the template as JSON.
func finish(template map[string]any) ([]byte, error) {
	resources, ok := template["Resources"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the template has no resources")
	}
	for _, v := range resources {
		r, _ := v.(map[string]any)
		delete(r, "Metadata")
		properties, _ := r["Properties"].(map[string]any)
		switch r["Type"] {
		case "AWS::Lambda::Function":
			code, _ := properties["Code"].(map[string]any)
			key, _ := code["S3Key"].(string)
			code["S3Bucket"] = ref("CodeBucket")
			code["S3Key"] = sub("${CodePrefix}" + strings.NewReplacer(
				"ARCH",
				"${Architecture}",
				names.Index.Program(templateKind).File(),
				names.Index.Program("${Kind}").File(),
			).Replace(key))
			properties["Architectures"] = []any{ref("Architecture")}
		case "AWS::SNS::Subscription":
			properties["RawMessageDelivery"] = either("KeepsEnvelope", false, true)
		case "AWS::CloudWatch::Alarm":
			if n, _ := properties["AlarmName"].(string); strings.HasSuffix(n, "-freshness") {
				properties["Threshold"] = either("HasFreshness", ref("FreshnessAlarm"), properties["Threshold"])
			}
		}
	}
	template["Parameters"] = templateParameters
	for _, part := range []string{"Resources", "Outputs"} {
		template[part] = replacePlaceholders(template[part])
	}
	template["Rules"] = templateRules
	out, err := json.MarshalIndent(template, "", " ")
	return append(out, '\n'), err
}

// templateRules report missing parameters before any resource is created.
var templateRules = map[string]any{
	"DomainNeedsARN":   rule("Auth", "sigv4", isSet("SinkArn"), "Auth sigv4 needs SinkArn"),
	"PasswordNeedsARN": rule("Auth", "basic", isSet("SecretArn"), "Auth basic needs SecretArn"),
	"KeyNeedsARN":      rule("Auth", "key", isSet("SecretArn"), "Auth key needs SecretArn"),
	"ElasticsearchIsNotSigned": rule("Kind", "elasticsearch", not(equals(ref("Auth"), "sigv4")),
		"Kind elasticsearch takes Auth none, basic or key"),
	"OpenSearchHasNoKey": rule("Kind", templateKind, not(equals(ref("Auth"), "key")),
		"Kind opensearch takes Auth none, basic or sigv4"),
}

// rule asserts a condition if the parameter has the given value.
func rule(name, value string, assert any, says string) map[string]any {
	return map[string]any{
		"RuleCondition": equals(ref(name), value),
		"Assertions":    []any{map[string]any{"Assert": assert, "AssertDescription": says}},
	}
}

// replacePlaceholders replaces the placeholders in every text of v with references to parameters.
func replacePlaceholders(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if name != "Fn::Sub" { // lull wrote this text itself, without placeholders
				v[name] = replacePlaceholders(inner)
			}
		}
	case []any:
		for i, inner := range v {
			v[i] = replacePlaceholders(inner)
		}
	case string:
		if v == forSettings {
			versions, delay := templateCan(false)
			lessVersions, lessDelay := templateCan(true)
			return map[string]any{"Fn::Sub": []any{
				templateSettings, map[string]any{
					"Serverless": either("IsServerless", `"serverless":true,`, ""), "AuthSettings": templateAuth,
					"Versions":   either("IsServerless", lessVersions, versions),
					"ApplyDelay": either("IsServerless", lessDelay, delay),
				},
			}}
		}
		if text := placeholders.Replace(v); strings.Contains(text, "${Stack}") || strings.Contains(text, "Arn}") {
			return sub(text)
		}
	}
	return v
}
