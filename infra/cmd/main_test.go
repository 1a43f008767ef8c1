// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"go.uber.org/goleak"

	"github.com/lullhq/lull/infra"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/operator/transition"
	"github.com/lullhq/lull/internal/seam/flight"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/blevesearch/bleve_index_api.AnalysisWorker"))
}

// settings writes a lull.yaml and returns its path.
func settings(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lull.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const good = "sinks:\n  search:\n    kind: opensearch\n    index: lull-{collection}\n    url: https://search.example.org\n"

// environment returns a function that looks up variables in a map.
func environment(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := m[name]
		return v, ok
	}
}

func TestOptionsComeFromTheEnvironmentAndFromContext(t *testing.T) {
	t.Parallel()
	o, err := read(environment(map[string]string{
		"LULL_CONFIG": settings(t, good), "LULL_DIST": "bin",
		"CDK_CONTEXT_JSON":         `{"dist":"other","topics":"arn:aws:sns:eu-west-1:111122223333:a, search/bulk=arn:aws:sns:eu-west-1:111122223333:b","aws:cdk:enable-path-metadata":true}`,
		"LULL_SENDERS":             "444455556666",
		"LULL_BUCKETS":             "/bulk=arn:aws:s3:::incoming",
		"LULL_STREAMS":             "arn:aws:kinesis:eu-west-1:111122223333:stream/clicks",
		"LULL_EVENT_BUS":           "content",
		"LULL_EVENT_SOURCES":       "cms,shop",
		"LULL_VPC_SUBNETS":         "subnet-a,subnet-b",
		"LULL_VPC_SECURITY_GROUPS": "sg-a",
		"LULL_KMS_KEY":             "arn:aws:kms:eu-west-1:111122223333:key/k",
		"LULL_SINK_ARNS":           "search=arn:aws:es:eu-west-1:111122223333:domain/search",
		"LULL_EPHEMERAL":           "true",
		"CDK_DEFAULT_ACCOUNT":      "111122223333",
		"CDK_DEFAULT_REGION":       "eu-west-1",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := o.props.AssetDir, "bin"; got != want {
		t.Errorf("binaries are in %s, want %s: the environment wins", got, want)
	}
	if want := []target{
		{optTopics, "", flight.Live, "arn:aws:sns:eu-west-1:111122223333:a"},
		{optTopics, "search", flight.Bulk, "arn:aws:sns:eu-west-1:111122223333:b"},
		{optSenders, "", flight.Live, "444455556666"},
		{optBuckets, "", flight.Bulk, "arn:aws:s3:::incoming"},
		{optStreams, "", flight.Live, "arn:aws:kinesis:eu-west-1:111122223333:stream/clicks"},
	}; !slices.Equal(o.upstreams, want) {
		t.Errorf("got upstreams %v, want %v", o.upstreams, want)
	}
	if len(o.sources) != 2 || o.bus != "content" {
		t.Errorf("got bus %s with %v", o.bus, o.sources)
	}
	if v := o.props.Vpc; v == nil || len(v.SubnetIDs) != 2 || len(v.SecurityGroupIDs) != 1 {
		t.Errorf("got VPC %v", v)
	}
	if !o.props.Ephemeral || o.props.PlainHTTP || o.props.SinkARNs["search"] == "" || o.key == "" ||
		*o.env.Region != "eu-west-1" {
		t.Errorf("got %+v", o.props)
	}
}

func TestFaultsOfOptionsAndSettingsComeAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := run(environment(map[string]string{
		"LULL_CONFIG": settings(
			t,
			"sinks:\n  search: {kind: bleve}\n",
		), "LULL_DIST": dir, "LULL_EVENT_BUS": "content",
		"LULL_EPHEMERAL": "perhaps",
		"LULL_KMS_KEY":   "key", "LULL_TOPICS": "nowhere/live=arn:aws:sns:::x,search/fast=arn:aws:sns:::y,z",
		"LULL_SINK_ARNS": "search",
	}))
	if err == nil {
		t.Fatal("got no fault")
	}
	var out strings.Builder
	report(&out, err)
	for _, want := range []string{
		"nothing was synthesised: ", "sinks.search.kind (bleve)", "run make build", "LULL_EVENT_SOURCES", "perhaps",
		"LULL_KMS_KEY names key, which is malformed: write arn:aws:kms:", "LULL_KMS_KEY needs",
		"nowhere", "fast", "LULL_TOPICS names z, which is malformed: write arn:aws:sns:REGION:ACCOUNT:NAME", "LULL_SINK_ARNS is not a list",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("got %v in the folder: %v", entries, err)
	}
}

// If a variable contains an ARN of the wrong kind, a fault names the variable before anything is
// deployed.
func TestWrongARNsNameTheirVariable(t *testing.T) {
	t.Parallel()
	const role = "arn:aws:iam::111122223333:role/support"
	for variable, tt := range map[string]struct{ good, bad []string }{
		"LULL_TOPICS": {
			[]string{
				"arn:aws:sns:eu-west-1:111122223333:published",
				"search/bulk=arn:aws:sns:eu-west-1:111122223333:p",
			},
			[]string{
				"published", "arn:aws:sqs:eu-west-1:111122223333:published",
				"arn:aws:sns:eu-west-1:1111:published", "arn:aws:sns:::published",
				"search/bulk=arn:aws:sns:eu-west-1:111122223333:",
			},
		},
		"LULL_BUCKETS": {
			[]string{"arn:aws:s3:::incoming"},
			[]string{"incoming", "arn:aws:s3:::incoming/folder", "arn:aws:s3:eu-west-1::incoming"},
		},
		"LULL_STREAMS": {
			[]string{
				"arn:aws:dynamodb:eu-west-1:111122223333:table/items/stream/2026-11-20T00:00:00.000",
				"search/bulk=arn:aws:kinesis:eu-west-1:111122223333:stream/clicks",
				"arn:aws:kinesis:eu-west-1:111122223333:stream/clicks/consumer/lull:1795190400",
			},
			[]string{
				"items", "arn:aws:dynamodb:eu-west-1:111122223333:table/items",
				"arn:aws:kafka:eu-west-1:111122223333:cluster/content/1",
			},
		},
		"LULL_SENDERS": {
			[]string{"444455556666", role},
			[]string{"4444", "cms", "arn:aws:sqs:eu-west-1:111122223333:queue", "arn:aws:iam::1:role/cms"},
		},
		"LULL_KMS_KEY": {
			[]string{"arn:aws:kms:eu-west-1:111122223333:key/k"},
			[]string{"key/k", "arn:aws:kms:eu-west-1:111122223333:alias/lull", role},
		},
		"LULL_READ_KMS_KEYS": {
			[]string{"arn:aws:kms:eu-west-1:111122223333:key/k"},
			[]string{"alias/aws/secretsmanager"},
		},
		"LULL_OPERATORS": {
			[]string{role, "arn:aws:iam::111122223333:root"},
			[]string{"support", "arn:aws:iam::111122223333:group/support"},
		},
		"LULL_ALARM_TOPIC": {[]string{"arn:aws:sns:eu-west-1:111122223333:alarms"}, []string{"alarms", role}},
		"LULL_EVENT_BUS": {
			[]string{"content", "arn:aws:events:eu-west-1:111122223333:event-bus/content"},
			[]string{"arn:aws:events:eu-west-1:111122223333:rule/content"},
		},
		"LULL_VPC_SUBNETS":         {[]string{"subnet-0a1b2c"}, []string{"vpc-0a1b2c", "eu-west-1a"}},
		"LULL_VPC_SECURITY_GROUPS": {[]string{"sg-0a1b2c"}, []string{"default"}},
		"LULL_SINK_ARNS": {nil, []string{
			"search", "search=domain/content",
			"search=arn:aws:es:::domain/content", "search=" + role,
		}},
	} {
		dist := t.TempDir()
		for _, value := range append(tt.good, tt.bad...) {
			vars := map[string]string{
				"LULL_CONFIG": settings(t, good+"    auth: {kind: sigv4}\n"), "LULL_DIST": dist,
				"LULL_EVENT_SOURCES": "cms",
				"LULL_EVENT_BUS":     "content", "CDK_DEFAULT_ACCOUNT": "111122223333",
				"CDK_DEFAULT_REGION": "eu-west-1",
			}
			vars[variable] = value
			o, err := read(environment(vars))
			if o == nil {
				t.Fatal(err)
			}
			var out strings.Builder
			report(&out, errors.Join(err, o.props.Validate()))
			item := value[strings.LastIndex(value, "=")+1:]
			named := false
			for line := range strings.Lines(out.String()) {
				named = named || strings.Contains(line, item) &&
					(strings.Contains(line, variable) || strings.Contains(line, "SinkARNs"))
			}
			if named != slices.Contains(tt.bad, value) {
				t.Errorf("%s=%s: named %v in\n%s", variable, value, named, &out)
			}
		}
	}
}

func TestSettingsThatCannotBeReadSayWhere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ path, want string }{
		"missing":   {filepath.Join(t.TempDir(), "none.yaml"), "LULL_CONFIG says where"},
		"no yaml":   {settings(t, "a: [b"), "LULL_CONFIG says where"},
		"a mistake": {settings(t, "stak: x\n"+good), "did you mean stack?"},
		"several":   {settings(t, "stak: x\nqueus: x\nqueues: {visibility: 5s}\n"+good), "synthesised: 5 faults"},
	} {
		err := run(environment(map[string]string{"LULL_CONFIG": tt.path}))
		if err == nil {
			t.Errorf("%s: got no error", name)
			continue
		}
		var out strings.Builder
		if report(&out, err); !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %q is missing in\n%s", name, tt.want, out.String())
		}
	}
	if _, err := read(environment(map[string]string{"CDK_CONTEXT_JSON": "{"})); err == nil {
		t.Error("a broken context passed")
	}
}

// In a clone, the functions come from make build. For a release, the options name the version of
// the functions.
func TestWhereTheFunctionsComeFrom(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		vars   map[string]string
		assets string
		from   infra.Release
	}{
		"a clone":  {assets: "dist"},
		"a folder": {vars: map[string]string{"LULL_DIST": "built"}, assets: "built"},
		"a release": {
			vars: map[string]string{
				"LULL_RELEASE": "v0.1.0", "LULL_RELEASE_SUM": "ab", "LULL_RELEASE_URL": "file:///releases",
			},
			from: infra.Release{Version: "v0.1.0", Sum: "ab", URL: "file:///releases"},
		},
	} {
		vars := map[string]string{"LULL_CONFIG": settings(t, good), "LULL_ARCHITECTURE": "x86_64"}
		maps.Copy(vars, tt.vars)
		o, err := read(environment(vars))
		if err != nil {
			t.Fatal(err)
		}
		if p := o.props; p.AssetDir != tt.assets || p.Release != tt.from || p.Architecture != infra.X86_64 {
			t.Errorf("%s: got %+v", name, p)
		}
	}
}

// A template needs the version of a release. A program that belongs to no release must be given a
// version.
func TestATemplateNeedsAVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lull.template.json")
	err := run(environment(map[string]string{"LULL_TEMPLATE": path}))
	if err == nil || !strings.Contains(err.Error(), "LULL_RELEASE") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a template was written")
	}
}

func TestUsageListsEveryOption(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	usage(&out)
	for _, o := range allOptions {
		if !strings.Contains(out.String(), o.env) || !strings.Contains(out.String(), o.context) {
			t.Errorf("%s is not listed", o.env)
		}
	}
}

// If a topic is removed from the list, or the order of topics changes, the subscriptions of the
// other topics do not change. If a subscription got another id, CloudFormation would create it
// again before it deletes the old one. SNS would return the existing subscription, which
// CloudFormation would then delete.
func TestSubscriptionsStayWhenTheListOfTopicsChanges(t *testing.T) {
	dist := programs(t)
	path := settings(t, good)
	stack := func(topics ...string) transition.Template {
		out := t.TempDir()
		for i := range topics {
			topics[i] = "arn:aws:sns:eu-west-1:111122223333:" + topics[i]
		}
		o, err := read(environment(map[string]string{
			"LULL_CONFIG": path, "LULL_DIST": dist, "LULL_TOPICS": strings.Join(topics, ","),
		}))
		if err != nil {
			t.Fatal(err)
		}
		app := awscdk.NewApp(&awscdk.AppProps{Outdir: &out})
		if _, err := o.build(app); err != nil {
			t.Fatal(err)
		}
		app.Synth(nil)
		file, err := os.Open(filepath.Join(out, "lull.template.json"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		template, err := transition.ReadTemplate(file)
		if err != nil {
			t.Fatal(err)
		}
		return template
	}
	two := stack("a", "b")
	for name, tt := range map[string]struct {
		other transition.Template
		want  []string
	}{
		"another order": {stack("b", "a"), nil},
		"one less":      {stack("b"), []string{"removed"}},
		"one more":      {stack("c", "a", "b"), []string{"created"}},
	} {
		var got []string
		for _, c := range transition.Templates(two, tt.other) {
			if c.Type == "AWS::SNS::Subscription" {
				got = append(got, string(c.Action))
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
	_, err := read(environment(map[string]string{
		"LULL_CONFIG": path, "LULL_TOPICS": "arn:aws:sns:eu-west-1:111122223333:a,search/live=arn:aws:sns:eu-west-1:111122223333:a",
	}))
	if err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a topic named twice: got %v", err)
	}
}

// programs returns a folder with files that look like the functions' programs for arm64.
func programs(t *testing.T) (dist string) {
	t.Helper()
	dist = t.TempDir()
	for _, f := range names.Functions() {
		program := make([]byte, 64)
		copy(program, "\x7fELF\x02\x01\x01")
		program[16], program[18], program[20], program[52] = 2, 183, 1, 64 // an arm64 program
		file := slices.Concat(program, []byte(f))
		folder := filepath.Join(dist, string(f.Program("opensearch")))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "bootstrap"), file, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dist
}

// A user who runs the program without CDK finds the template in the folder that -help names. Too
// many upstreams for a queue are a fault like other faults.
func TestItWritesToTheFolderThatHelpNames(t *testing.T) {
	vars := map[string]string{
		"LULL_CONFIG": settings(t, good), "LULL_DIST": programs(t), "LULL_SENDERS": "100000000000",
	}
	t.Chdir(t.TempDir())
	for account := 100000000001; account < 100000000020; account++ {
		vars["LULL_SENDERS"] += fmt.Sprint(",", account)
	}
	err := run(environment(vars))
	if err == nil || !strings.Contains(err.Error(), "would have a policy of 21 statements") {
		t.Errorf("twenty senders: got %v", err)
	}
	delete(vars, "LULL_SENDERS")
	if err := run(environment(vars)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join("cdk.out", "lull.template.json")); err != nil {
		t.Error(err)
	}
}

// Without Node, CDK would panic. So an error names Node before that.
func TestMissingNodeIsNamed(t *testing.T) {
	t.Parallel()
	for name, vars := range map[string]map[string]string{
		"a stack":    {"LULL_CONFIG": settings(t, good), "LULL_DIST": programs(t)},
		"a template": {"LULL_TEMPLATE": filepath.Join(t.TempDir(), "t.json"), "LULL_RELEASE": "v0.1.0"},
	} {
		vars["JSII_NODE"] = "/nowhere/node"
		if err := run(environment(vars)); err == nil || !strings.Contains(err.Error(), "install Node 18") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The name of a pipe is part of the names of alarms. Two pipes of a sink must not have the same
// name.
func TestAPipeIsNamedAfterItsStream(t *testing.T) {
	t.Parallel()
	const at = ":eu-west-1:111122223333:"
	for arn, want := range map[string]string{
		"arn:aws:dynamodb" + at + "table/items/stream/2026-11-20T00:00:00.000": "items-",
		"arn:aws:dynamodb" + at + "table/items/stream/2026-11-21T00:00:00.000": "items-",
		"arn:aws:kinesis" + at + "stream/_Clicks.of.everybody":                 "clicks-of-ev-",
		"arn:aws:kinesis" + at + "stream/__":                                   "stream-",
		"arn:aws:kinesis" + at + "stream/pages/consumer/lull:1795190400":       "pages-",
	} {
		name := streamID(arn)
		shape := regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,19}$`)
		if !strings.HasPrefix(name, want) || len(name) != len(want)+6 || !shape.MatchString(name) {
			t.Errorf("%s: got %s, want %s and six digits", arn, name, want)
		}
	}
	if streamID("arn:aws:kinesis"+at+"stream/a") == streamID("arn:aws:kinesis:eu-west-1:444455556666:stream/a") {
		t.Error("streams of two accounts have one name")
	}
}
