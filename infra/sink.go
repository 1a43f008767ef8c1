package infra

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/names"
)

// Sink is everything that serves one sink, apart from what serves another's, so that a dead sink
// fills no queue but its own.
type Sink struct {
	Name      string
	Queues    Queues
	Functions map[names.Function]*Deployed
	// Machines are the state machines: the setting flight.kind says which ones executions take.
	Machines map[config.FlightKind]awsstepfunctions.CfnStateMachine

	lull  *Lull
	scope constructs.Construct
}

// newSink builds one sink's part of the stack.
func newSink(l *Lull, name string, code assets) *Sink {
	s := &Sink{
		Name: name, lull: l, scope: constructs.NewConstruct(l.Construct, jsii.String("Sink-"+name)),
		Functions: make(map[names.Function]*Deployed),
		Machines:  make(map[config.FlightKind]awsstepfunctions.CfnStateMachine),
	}
	s.Queues = newQueues(s.scope, l.props, name)
	if l.props.StateOnly {
		return s
	}
	for _, f := range names.Functions() {
		s.Functions[f] = s.newFunction(f, code[f.Program(l.props.Config.Sinks[name].Kind)])
	}
	s.newMachines()
	s.newMappings()
	s.newPruneRules()
	return s
}

// every applies f to every item of a list.
func every[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	for i, item := range list {
		out[i] = f(item)
	}
	return out
}

// sinkNames are the sinks in a stable order.
func sinkNames(c *config.Config) []string { return slices.Sorted(maps.Keys(c.Sinks)) }

func (s *Sink) names() names.Names { return names.Of(s.lull.props.Config) }

// machineARN is a state machine's ARN from its name: the functions name the machine, which names a
// function.
func (s *Sink) machineARN(kind config.FlightKind) string {
	return arn("states", "stateMachine:"+s.names().StateMachine(s.Name, kind))
}

// machineARNs are those of both: a flight that the other kind began goes on in this one.
func (s *Sink) machineARNs() []string { return every(machineKinds, s.machineARN) }

// Endpoints that AWS gives to domains and collections. A custom endpoint says nothing about what is
// behind it.
var (
	domainHost = regexp.MustCompile(
		`^(?:search|vpc)-([a-z][a-z0-9-]{2,27})-[a-z0-9]{26}\.(?:aos\.)?([a-z0-9-]+)\.(?:es\.amazonaws\.com(?:\.cn)?|on\.aws)$`)
	collectionHost = regexp.MustCompile(`^([a-z0-9]{3,40})\.([a-z0-9-]+)\.aoss\.amazonaws\.com(?:\.cn)?$`)
)

// sinkARN is the ARN of a sink that takes signed requests: as it is given, or as its address tells.
func (p *Props) sinkARN(sink string) string {
	if given := p.SinkARNs[sink]; given != "" {
		return given
	}
	service, region, resource := sinkResource(p.Config.Sinks[sink].URL)
	return strings.Join([]string{"arn", *awscdk.Aws_PARTITION(), service, region, *awscdk.Aws_ACCOUNT_ID(), resource},
		":")
}

// sinkResource is what an address tells of the domain or collection behind it; all empty where it
// tells nothing.
func sinkResource(address string) (service, region, resource string) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", ""
	}
	if m := domainHost.FindStringSubmatch(u.Hostname()); m != nil {
		return "es", m[2], "domain/" + m[1]
	}
	if m := collectionHost.FindStringSubmatch(u.Hostname()); m != nil {
		return "aoss", m[2], "collection/" + m[1]
	}
	return "", "", ""
}
