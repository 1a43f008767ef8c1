// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/sink"
)

// maxFunctionName is Lambda's limit, in characters. The names of queues, roles, buckets and state
// machines never reach the limits of their services.
const maxFunctionName = 64

// Validate returns all faults of the settings and of the Props, as one joined error; Faults splits
// the error. If it returns nil, the stack can be synthesised. Validate reads the programs, and
// downloads the programs of Release. It changes nothing else.
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
	p.checkReferences(&fs)
	p.checkPlace(&fs)
	p.checkCanary(&fs)
	p.checkVerify(&fs)
	if !p.StateOnly && p.template == nil {
		p.checkAssets(&fs)
	}
	return errors.Join(fs...)
}

type faultList []error

func (fs *faultList) add(setting, value, problem, fix string) {
	*fs = append(*fs, &config.Fault{Rule: "deployed", Setting: setting, Value: value, Problem: problem, Fix: fix})
}

// inEnvironment refuses a setting that reads credentials from an environment variable. A deployed
// function reads them from a secret, whose ARN is in the setting secretARN.
func (fs *faultList) inEnvironment(setting, variable, beside string) {
	if variable != "" {
		fs.add(setting, variable, "a deployed function's environment holds names and ARNs only",
			"store what it holds as a secret and write its ARN as "+beside+".secretARN")
	}
}

// exactlyOne reports a fault unless exactly one of the fields is set.
func (fs *faultList) exactlyOne(setting, fields string, set ...bool) {
	if n := len(slices.DeleteFunc(set, func(is bool) bool { return !is })); n != 1 {
		fs.add(setting, "", "has "+strconv.Itoa(n)+" of "+fields, "set exactly one")
	}
}

// checkNames reports names that are too long for their service, by the longest name of each kind.
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

// Limits of a stack. CloudFormation allows 500 resources, and IAM allows 10,240 characters in all
// policies of a role, without blanks. The operator has the largest policy, because it names
// resources of every sink.
const (
	maxResources  = 500
	maxPolicy     = 10_240
	feedResources = 8 // function, its role and log, pipe, its role and alarm, queue and its policy
	// searchableResources are function, its role, its log and its URL, and two alarms
	searchableResources = 6
	stackResources      = 8  // table, bucket and its policy, three roles, dashboard, alarm
	sinkResources       = 65 // of one sink without upstreams
	// rolloutResources are those of one sink if CodeDeploy shifts its functions.
	rolloutResources = 5
	// operatorStatements is the size of the operator's policy in a stack with a key, without the
	// names of the sinks.
	operatorStatements = 3_250
	// indexStatements is the size of the policy of index without its lists (see indexLists). No
	// other function has a larger policy.
	indexStatements = 4_250
)

// checkLimits reports a stack with too many resources or a too large policy, and two sinks whose
// outputs would have the same name.
func (p *Props) checkLimits(fs *faultList) {
	const fix = "deploy the others as another stack, with another `stack`"
	sinks, outputs := sinkNames(p.Config), make(map[string]string)
	resources, policy := stackResources+len(p.Upstreams), operatorStatements
	if p.Config.CommitFeed {
		resources += feedResources
	}
	if p.Config.SearchableCalls != nil {
		resources += searchableResources
	}
	if all := p.works(); len(all) > 0 {
		resources += jobResources + workResources*len(all)
	}
	if p.Rollout.shifts() {
		resources++
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
		if p.Rollout.shifts() {
			resources += rolloutResources
		}
		policy += operatorSize(n, sink)
		p.checkIndexPolicy(fs, sink)
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

// checkIndexPolicy refuses a policy of index that is too large for IAM. The fault names the field
// that adds most characters to the policy.
func (p *Props) checkIndexPolicy(fs *faultList, sink string) {
	lists := p.indexLists(sink)
	fields := slices.SortedFunc(maps.Keys(lists), func(a, b string) int {
		return cmp.Or(cmp.Compare(lists[b], lists[a]), cmp.Compare(a, b))
	})
	size := indexStatements
	for _, n := range lists {
		size += n
	}
	if size <= maxPolicy {
		return
	}
	fs.add(fields[0], "", fmt.Sprintf("has %d of about %d characters that the policy of index of sink %s would have: "+
		"IAM takes %d", lists[fields[0]], size, sink, maxPolicy), map[string]string{
		"collections":   "name fewer collections, shorten their names, or deploy some as another stack",
		"payload.allow": "allow fewer places: a shorter prefix, or a whole bucket, instead of many folders",
		"sources":       "fetch from fewer buckets, with fewer secrets",
		"ReadKeyARNs":   "name fewer keys",
	}[fields[0]])
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

// checkAuth looks for credentials that a deployed function cannot have, and for sinks that no role
// can name.
func (p *Props) checkAuth(fs *faultList) {
	for _, name := range sinkNames(p.Config) {
		s, at := p.Config.Sinks[name], "sinks."+name+".auth"
		for _, c := range p.Config.Enriched(name) {
			at := "collections." + string(c) + ".enrich.headers"
			fs.inEnvironment(at+".env", p.Config.Collections[string(c)].Enrich.Headers.Env, at)
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
	for _, name := range slices.Sorted(maps.Keys(p.SinkARNs)) {
		if s, ok := p.Config.Sinks[name]; !ok || s.Auth.Kind != config.AuthSigV4 {
			fs.add("SinkARNs", name, "is not a sink with auth.kind sigv4", "give ARNs of such sinks only")
		}
	}
}

// checkReach refuses a sink whose address is the function's own machine. If Ephemeral is set,
// checkReach accepts this address, because in an emulator the address means the machine on which
// the emulator runs.
func (p *Props) checkReach(fs *faultList) {
	for _, name := range sinkNames(p.Config) {
		u, err := url.Parse(p.Config.Sinks[name].URL)
		if err != nil || p.Ephemeral {
			continue
		}
		if sink.Loopback(u.Hostname()) {
			fs.add("sinks."+name+".url", p.Config.Sinks[name].URL, "is the function's own machine",
				"write an address that a deployed function reaches")
		}
	}
}

// checkPlace checks where and how the stack is deployed.
func (p *Props) checkPlace(fs *faultList) {
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
			p.FeedParallel < 0 || p.FeedParallel > maxPipeParallel, "FeedParallel", strconv.Itoa(p.FeedParallel),
			"is not 1 to " + strconv.Itoa(maxPipeParallel),
			"write how many batches of a shard the commit feed reads at once (LULL_FEED_PARALLEL)",
		},
		{
			p.FeedParallel > 0 && !p.Config.CommitFeed, "FeedParallel", strconv.Itoa(p.FeedParallel),
			"is for a commit feed, but commitFeed is not set", "set commitFeed: true, or remove it (LULL_FEED_PARALLEL)",
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
			!p.Rollout.known(), "Rollout", string(p.Rollout), "is not a rollout",
			"write " + rollouts() + " (LULL_ROLLOUT)",
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

// incomplete reports whether a VPC lacks subnets or security groups. A function or pipe needs both.
func (v *Vpc) incomplete() bool {
	return v != nil && (len(v.SubnetIDs) == 0 || len(v.SecurityGroupIDs) == 0)
}

// checkThresholds reports thresholds of alarms that do not exist, and values that are not above 0.
func (p *Props) checkThresholds(fs *faultList) {
	all := alarms.OfStack(p.Config)
	for name := range p.Config.Sinks {
		all = append(all, alarms.Sink{Config: p.Config, Name: name}.Alarms()...)
	}
	if p.Config.CommitFeed {
		all = append(all, alarms.OfPipe("", 0)...)
	}
	all = append(all, alarms.OfSearchable(p.Config)...)
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

// checkAssets checks that the programs exist and match the architecture. An arm64 function with an
// x86 program can be deployed, but never starts.
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
			return // the next programs would fail for the same reason
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
