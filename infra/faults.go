package infra

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/names"
	"github.com/lullhq/lull/internal/release"
)

// maxFunctionName is Lambda's limit. The names of queues, roles, buckets and state machines never
// reach theirs.
const maxFunctionName = 64

// Validate returns every fault of the settings and of the Props at once, joined; nil means that
// they can be synthesised. Faults takes the error apart. It reads the programs, fetches those of
// Release, and changes nothing else.
func (p *Props) Validate() error {
	if p == nil || p.Config == nil {
		return errors.New("there are no settings")
	}
	var fs faultList
	if err := p.Config.ValidateDeployed(); err != nil {
		fs = append(fs, err)
	}
	p.checkNames(&fs)
	p.checkLimits(&fs)
	p.checkAuth(&fs)
	p.checkReach(&fs)
	p.checkUpstreams(&fs)
	p.checkPipes(&fs)
	p.checkTopics(&fs)
	p.checkPlace(&fs)
	if !p.StateOnly && p.template == nil {
		p.checkAssets(&fs)
	}
	return errors.Join(fs...)
}

type faultList []error

func (fs *faultList) add(setting, value, problem, fix string) {
	*fs = append(*fs, &config.Fault{Rule: "deployed", Setting: setting, Value: value, Problem: problem, Fix: fix})
}

// inEnvironment refuses a variable with credentials: a secret whose ARN stands beside it takes its
// place.
func (fs *faultList) inEnvironment(setting, variable, beside string) {
	if variable != "" {
		fs.add(setting, variable, "a deployed function's environment holds names and ARNs only",
			"store what it holds as a secret and write its ARN as "+beside+".secretARN")
	}
}

// exactlyOne wants one of the fields to be set.
func (fs *faultList) exactlyOne(setting, fields string, set ...bool) {
	if n := len(slices.DeleteFunc(set, func(is bool) bool { return !is })); n != 1 {
		fs.add(setting, "", "has "+strconv.Itoa(n)+" of "+fields, "set exactly one")
	}
}

// checkNames looks for names that are longer than the service takes: the longest of each kind.
func (p *Props) checkNames(fs *faultList) {
	n := names.Of(p.Config)
	for _, sink := range sinkNames(p.Config) {
		if name := n.Function(sink, names.Receive); len(name) > maxFunctionName {
			fs.add("sinks."+sink, "", "its function "+name+" would have "+strconv.Itoa(len(name))+
				" characters: Lambda takes "+strconv.Itoa(maxFunctionName),
				"shorten stack or the sink's name")
		}
	}
}

// Limits of a stack. CloudFormation takes 500 resources, and IAM 10,240 characters of a role's
// policies, without blanks. The largest policy is the operator's, which names what every sink has.
const (
	maxResources   = 500
	maxPolicy      = 10_240
	feedResources  = 5  // function, its role and log, pipe and its role
	stackResources = 8  // table, bucket and its policy, three roles, dashboard, alarm
	sinkResources  = 65 // without upstreams
	// operatorStatements is the operator's policy without what it names of each sink, with a key.
	operatorStatements = 3_250
)

// checkLimits looks for more than one stack may have, and for two sinks that would be called the
// same.
func (p *Props) checkLimits(fs *faultList) {
	const fix = "deploy the others as another stack, with another `stack`"
	sinks, outputs := sinkNames(p.Config), make(map[string]string)
	resources, policy := stackResources+len(p.Upstreams), operatorStatements
	if p.Config.CommitFeed {
		resources += feedResources
	}
	for _, u := range p.Upstreams {
		if u.Pipe != nil {
			resources += pipeResources(u.Pipe)
		}
	}
	n := names.Of(p.Config)
	for _, sink := range sinks {
		if other, ok := outputs[title(sink)]; ok {
			fs.add("sinks."+sink, "", "and "+other+" would have outputs of one name, Lull"+title(sink)+"LiveQueue",
				"rename one of them")
		}
		outputs[title(sink)] = sink
		resources += sinkResources
		policy += operatorSize(n, sink)
	}
	if resources > maxResources {
		fs.add("sinks", strconv.Itoa(len(sinks)), "and their upstreams would be "+strconv.Itoa(resources)+
			" resources: CloudFormation takes "+strconv.Itoa(maxResources)+" a stack", fix)
	}
	if policy > maxPolicy {
		fs.add("sinks", strconv.Itoa(len(sinks)), "would give the operator's role a policy of about "+
			strconv.Itoa(policy)+" characters: IAM takes "+strconv.Itoa(maxPolicy), "shorten their names, or "+fix)
	}
}

// operatorSize is how many characters a sink adds to the operator's policy, in the region and the
// partition with the longest names.
func operatorSize(n names.Names, sink string) int {
	const around = len(`"arn:aws-us-gov:states:us-gov-west-1:123456789012:stateMachine:",`)
	size := 0
	for _, kind := range machineKinds {
		size += around + len(n.StateMachine(sink, kind))
	}
	for _, lane := range []flight.Lane{flight.Live, flight.Bulk} {
		size += 2 * (around + len(n.Queue(sink, lane))) // FindQueues, Redrive
	}
	size += around + len(n.DeadQueue(sink))
	for _, f := range names.Functions() {
		size += around + len(n.FunctionLog(sink, f))
	}
	return size
}

// sinkARNPattern is the ARN of a sink that takes signed requests.
var sinkARNPattern = regexp.MustCompile(
	`^arn:aws[a-z-]*:(es:[a-z0-9-]+:[0-9]{12}:domain/[a-z][a-z0-9-]{2,27}|aoss:[a-z0-9-]+:[0-9]{12}:collection/[a-z0-9]{3,40}|` +
		`rds-db:[a-z0-9-]+:[0-9]{12}:dbuser:[A-Za-z0-9-]{1,63}/[A-Za-z_][A-Za-z0-9_-]{0,62})$`)

// checkAuth looks for credentials that a deployed function cannot have, and for sinks that no role
// can name.
func (p *Props) checkAuth(fs *faultList) {
	for _, name := range sinkNames(p.Config) {
		s, at := p.Config.Sinks[name], "sinks."+name+".auth"
		for _, c := range p.Config.Enriched(name) {
			at := "collections." + string(c) + ".enrich.headers"
			fs.inEnvironment(at+".env", p.Config.EnrichFor(c).Headers.Env, at)
		}
		fs.inEnvironment(at+".userEnv", s.Auth.UserEnv, at)
		fs.inEnvironment(at+".passwordEnv", s.Auth.PasswordEnv, at)
		fs.inEnvironment(at+".keyEnv", s.Auth.KeyEnv, at)
		_, _, known := sinkResource(s.URL)
		if s.Auth.Kind == config.AuthSigV4 && known == "" && p.SinkARNs[name] == "" {
			fs.add("sinks."+name+".url", s.URL,
				"does not tell which domain, collection or database it is, so no role can name it",
				"give its ARN: Props.SinkARNs, or LULL_SINK_ARNS="+name+"=arn:aws:es:...")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Config.Sources)) {
		if f, at := p.Config.Sources[name].Fetch, "sources."+name+".fetch.headers"; f != nil {
			fs.inEnvironment(at+".env", f.Headers.Env, at)
		}
	}
	for name, arn := range p.SinkARNs {
		if !sinkARNPattern.MatchString(arn) {
			fs.add("SinkARNs", name+"="+arn, "is not the ARN of a domain, a collection or a user of a database",
				"write arn:aws:es:REGION:ACCOUNT:domain/NAME or arn:aws:aoss:REGION:ACCOUNT:collection/ID or arn:aws:rds-db:REGION:ACCOUNT:dbuser:RESOURCE/USER "+
					"(LULL_SINK_ARNS)")
		}
		if s, ok := p.Config.Sinks[name]; !ok || s.Auth.Kind != config.AuthSigV4 {
			fs.add("SinkARNs", name, "is not a sink with auth.kind sigv4", "give ARNs of such sinks only")
		}
	}
}

// checkReach refuses a sink on the function's own machine, except on an emulator, where it is the
// host's.
func (p *Props) checkReach(fs *faultList) {
	for _, name := range sinkNames(p.Config) {
		u, err := url.Parse(p.Config.Sinks[name].URL)
		if err != nil || p.Ephemeral {
			continue
		}
		ip, err := netip.ParseAddr(u.Hostname())
		if u.Hostname() == "localhost" || err == nil && ip.IsLoopback() {
			fs.add("sinks."+name+".url", p.Config.Sinks[name].URL, "is the function's own machine",
				"write an address that a deployed function reaches")
		}
	}
}

// maxStatements is how many statements the policy of a queue takes. One is its own: it demands TLS.
const maxStatements = 20

// checkUpstreams looks for upstreams that no queue can take in. Each is a statement in the policy
// of its queue, and those that may leave something in the dead-letter queue in that one's too.
func (p *Props) checkUpstreams(fs *faultList) {
	statements := make(map[string]int)
	for _, u := range p.Upstreams {
		if u.Pipe != nil {
			continue // its role may send: no queue has to say so
		}
		for _, sink := range u.sinks(p.Config) {
			statements["sinks."+sink+", lane "+string(u.lane())]++
			if u.Sender == nil {
				statements["sinks."+sink+", dead letters"]++
			}
		}
	}
	for _, queue := range slices.Sorted(maps.Keys(statements)) {
		if n := statements[queue] + 1; n > maxStatements {
			fs.add("Upstreams", queue, "would have a policy of "+strconv.Itoa(n)+" statements: SQS takes "+
				strconv.Itoa(maxStatements), "send through fewer topics, or let an account send instead of its roles")
		}
	}
	for i, u := range p.Upstreams {
		at := fmt.Sprintf("Upstreams[%d]", i)
		if _, ok := p.Config.Sinks[u.sink(p.Config)]; !ok {
			fs.add(at+".Sink", u.Sink, "names nothing under sinks",
				"write one of "+strings.Join(sinkNames(p.Config), ", "))
		}
		if !slices.Contains([]flight.Lane{flight.Live, flight.Bulk}, u.lane()) {
			fs.add(at+".Lane", string(u.Lane), "is not a lane", "write live or bulk")
		}
		for _, sink := range u.sinks(p.Config) {
			if s := p.Config.Sinks[sink]; s.LiveQueue != "" && u.lane() == flight.Live && u.Pipe == nil {
				fs.add(at, s.LiveQueue, "is a queue that exists already: a policy of this stack would replace its own",
					"let its own stack say who may send to it, and leave this upstream out")
			}
		}
		if all := p.Config.Companions(u.sink(p.Config)); u.one() && len(all) > 1 {
			fs.add(at+".Sink", all[0], "would get alone what is for the sinks "+strings.Join(all, ", ")+": the others never "+
				"would", "have an SNS topic or an event bus between them, and name that: Topic or Bus (LULL_TOPICS, "+
				"LULL_EVENT_BUS)")
		}
		if u.Sender != nil && u.SenderARN == "" && anybody(u.Sender) {
			fs.add(at+".SenderARN", "", "is empty, so that anybody may send: through a service, in whatever account",
				"set it to the ARN of what the service sends for, such as the bucket; or make Sender a role or an account")
		}
		fs.exactlyOne(at, "Topic, Bus, Pipe and Sender", u.Topic != nil, u.Bus != nil, u.Pipe != nil, u.Sender != nil)
		if (u.Bus == nil) != (u.Pattern == nil) {
			fs.add(at+".Pattern", "", "and Bus belong together",
				"set both: without a pattern every event of the bus would be sent")
		}
	}
}

// checkTopics looks for match rules that cannot hold, and for topics whose events would be dead
// letters in another sink's queue.
func (p *Props) checkTopics(fs *faultList) {
	sinks, bySink := make(map[string][]string), false
	for _, u := range p.Upstreams {
		if u.Topic == nil && u.Envelope {
			fs.add("Upstreams", "", "has Envelope without Topic", "leave Envelope out: only SNS has this envelope")
		}
		for _, sink := range u.sinks(p.Config) {
			if u.Topic != nil && !slices.Contains(sinks[*u.Topic.TopicArn()], sink) {
				sinks[*u.Topic.TopicArn()] = append(sinks[*u.Topic.TopicArn()], sink)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Config.Sources)) {
		for i, m := range p.Config.Sources[name].Match {
			bySink = bySink || m.Sink != ""
			if at := fmt.Sprintf("sources.%s.match[%d]", name, i); m.Topic != "" && m.Named && sinks[m.Topic] != nil {
				fs.add(at, m.Topic, "also asks for the attribute lull-source, which stays in SNS's envelope where a rule names "+
					"the topic: it never holds", "remove named or topic")
			}
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(sinks)) {
		if to := sinks[topic]; len(to) > 1 && !bySink && p.Config.Queues.Elsewhere != config.ElsewhereSkip {
			fs.add("queues.elsewhere", string(p.Config.Queues.Elsewhere), "makes dead letters of the events of one topic, "+
				"which the queues of sinks "+strings.Join(to, " and ")+" get: each has those of the other", "write skip")
		}
	}
}

// anybody reports whether a principal is everybody, or a service, which acts for every account.
func anybody(who awsiam.IPrincipal) bool {
	for kind, list := range *who.PolicyFragment().PrincipalJson() {
		if kind == "Service" || kind == "*" || slices.ContainsFunc(*list, func(s *string) bool { return *s == "*" }) {
			return true
		}
	}
	return false
}

// checkPlace looks at where and how everything is deployed.
func (p *Props) checkPlace(fs *faultList) {
	for _, f := range slices.Sorted(maps.Keys(p.Memory)) {
		if mb := p.Memory[f]; !slices.Contains(names.Functions(), f) || mb < 128 || mb > 10_240 {
			fs.add("Memory", string(f)+"="+strconv.Itoa(mb), "is not a function and its memory",
				"write receive, index, prune or dlq, and 128 to 10240 MB (LULL_MEMORY)")
		}
	}
	p.checkThresholds(fs)
	a, w := p.architecture(), p.Warm
	for _, c := range []struct {
		wrong                        bool
		setting, value, problem, fix string
	}{
		{p.Vpc.incomplete(), "Vpc", "", "has no subnets or no security groups", "give at least one of each, or leave Vpc out"},
		{a != ARM64 && a != X86_64, "Architecture", string(a), "is not one of Lambda's", "write arm64 or x86_64"},
		{
			p.IndexConcurrency < 0, "IndexConcurrency", strconv.Itoa(p.IndexConcurrency), "is negative",
			"write how many invocations of index may run at once, or 0 for no limit (LULL_INDEX_CONCURRENCY)",
		},
		{
			w != (Throughput{}) && (w.Reads < 12_000 || w.Writes < 4_000),
			"Warm", fmt.Sprintf("%d,%d", w.Reads, w.Writes), "is less than every new table takes", "write at least 12000,4000, or leave it out (LULL_WARM_THROUGHPUT)",
		},
		{
			!slices.Contains([]string{"DEBUG", "INFO", "WARN", "ERROR"}, p.logLevel()), "LogLevel", p.LogLevel,
			"is not a level", "write DEBUG, INFO, WARN or ERROR (LULL_LOG_LEVEL)",
		},
		{
			p.PlainHTTP && !p.Ephemeral, "PlainHTTP", "true", "would let messages travel unencrypted",
			"remove it: it is for emulators, with Ephemeral",
		},
	} {
		if c.wrong {
			fs.add(c.setting, c.value, c.problem, c.fix)
		}
	}
}

// incomplete reports whether a VPC lacks what a function or a pipe needs to be in it.
func (v *Vpc) incomplete() bool {
	return v != nil && (len(v.SubnetIDs) == 0 || len(v.SecurityGroupIDs) == 0)
}

// checkThresholds looks for alarms that do not exist and for thresholds that always or never hold.
func (p *Props) checkThresholds(fs *faultList) {
	all := alarms.OfStack(p.Config)
	for name := range p.Config.Sinks {
		all = append(all, alarms.Sink{Config: p.Config, Name: name}.Alarms()...)
	}
	for _, u := range p.Upstreams {
		if u.Pipe != nil {
			all = append(all, alarms.OfPipe("", u.Pipe.Idle)...)
		}
	}
	kinds := make(map[string]bool)
	for _, a := range all {
		kinds[a.Kind] = true
	}
	for _, kind := range sortedKeys(p.Thresholds) {
		if given := p.Thresholds[kind]; !kinds[kind] || given <= 0 || math.IsInf(given, 0) || math.IsNaN(given) {
			fs.add("Thresholds", fmt.Sprintf("%s=%v", kind, given), "is not an alarm and a threshold above 0",
				"name one of "+strings.Join(sortedKeys(kinds), ", ")+" (LULL_ALARM_THRESHOLDS)")
		}
	}
}

// checkAssets looks for the programs and for what they run on: an arm64 function with an x86
// program deploys and never starts.
func (p *Props) checkAssets(fs *faultList) {
	setting, fix := "AssetDir", "run make build"
	switch given := p.Release != (Release{}); {
	case p.AssetDir != "" && given:
		fs.add("Release", p.Release.Version, "and AssetDir are both set", "leave one of them out")
		return
	case p.AssetDir == "" && (given || release.Own() != ""):
		setting, fix = "Release", "check LULL_RELEASE_URL, or build the functions yourself and set AssetDir (LULL_DIST)"
	case p.AssetDir == "":
		fs.add("AssetDir", "", "and Release are empty: nothing says where the functions' programs are",
			"run make build and set AssetDir (LULL_DIST), or set Release (LULL_RELEASE)")
		return
	}
	want := map[Architecture]elf.Machine{ARM64: elf.EM_AARCH64, X86_64: elf.EM_X86_64}[p.architecture()]
	for _, of := range p.programs() {
		path := p.path(of)
		program, err := p.program(of)
		switch {
		case errors.Is(err, errTwoPrograms):
			fs.add(setting, path, err.Error(), "delete the one that you do not mean: index/"+release.Program+
				" is a program of your own, with the kinds that you import")
			continue
		case errors.Is(err, os.ErrNotExist) && p.AssetDir != "":
			fix := fix + "; for BuildFunctions, run go get -tool " + functionsPath + string(of)
			if own, isKind := ownIndex(of); isKind {
				fix += "; a program of yours that links the kind is " + string(own) + "/" + release.Program + " there"
			}
			fs.add(setting, path, "does not exist", fix)
			continue
		case err != nil && p.AssetDir == "":
			fs.add(setting, cmp.Or(p.Release.Version, release.Own()), "cannot be used: "+err.Error(), fix)
			return // the others would say the same
		case err != nil:
			fs.add(setting, path, "cannot be read: "+err.Error(), fix)
			continue
		}
		file, err := elf.NewFile(bytes.NewReader(program))
		if err != nil {
			fs.add(setting, path, "is not a Linux program", fix)
			continue
		}
		if machine := file.Machine; machine != want && !p.Ephemeral {
			fs.add(setting, path, "is built for "+machine.String()+", the function is "+string(p.architecture()),
				"run make build without ARCH, or set Architecture (LULL_ARCHITECTURE)")
		}
	}
}
