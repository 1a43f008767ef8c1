// SPDX-License-Identifier: Apache-2.0

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
	"github.com/lullhq/lull/internal/deploy/names"
)

// Sink holds all resources that serve one sink. Each sink has its own resources, so that an
// unreachable sink fills only its own queue.
type Sink struct {
	Name      string
	Queues    Queues
	Functions map[names.Function]*Deployed
	// Machines are the state machines, by kind. The setting flight.kind says which kind flights
	// use.
	Machines map[config.FlightKind]awsstepfunctions.CfnStateMachine

	lull  *Lull
	scope constructs.Construct
}

// newSink makes the resources of one sink.
func newSink(l *Lull, name string, code assets) *Sink {
	s := &Sink{
		Name: name, lull: l, scope: constructs.NewConstruct(l.Construct, jsii.String("Sink-"+name)),
		Functions: make(map[names.Function]*Deployed),
		Machines:  make(map[config.FlightKind]awsstepfunctions.CfnStateMachine),
	}
	l.tag(s.scope, sinkTag, name)
	if notice := trustNotice(l.props.Config, name); notice != "" {
		awscdk.Annotations_Of(s.scope).AddInfo(&notice)
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

// trustNotice returns what an operator has to do if only the settings name the index of a sink that
// keeps unchanged documents. For any other sink it returns "". cdk synth and cdk deploy print it.
func trustNotice(c *config.Config, name string) string {
	if !c.OperatorNamesIndex(name) || !c.KeepsAny(name) {
		return ""
	}
	return "sinks." + name + ": unchanged documents are kept, and this sink cannot recognise its index. If the index is " +
		"emptied or restored, or another program writes to it, change sinks." + name + ".generation. Otherwise lull may " +
		"commit documents that the index lacks, until `lull index repair` compares them with the source or an export."
}

// every applies f to every item of a list.
func every[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	for i, item := range list {
		out[i] = f(item)
	}
	return out
}

// sinkNames lists the sinks in a stable order.
func sinkNames(c *config.Config) []string { return slices.Sorted(maps.Keys(c.Sinks)) }

func (s *Sink) names() names.Names { return names.Of(s.lull.props.Config) }

// machineARN builds a state machine's ARN from its name. A reference would be circular, because the
// machine refers to a function that needs this ARN.
func (s *Sink) machineARN(kind config.FlightKind) string {
	return arn("states", "stateMachine:"+s.names().StateMachine(s.Name, kind))
}

// machineARNs lists both state machines. The functions may start both, and a flight that started in
// one state machine may continue in the other.
func (s *Sink) machineARNs() []string { return every(machineKinds, s.machineARN) }

// The host names that AWS gives to domains and collections. A custom endpoint does not show which
// domain or collection it belongs to.
var (
	domainHost = regexp.MustCompile(
		`^(?:search|vpc)-([a-z][a-z0-9-]{2,27})-[a-z0-9]{26}\.(?:aos\.)?([a-z0-9-]+)\.(?:es\.amazonaws\.com(?:\.cn)?|on\.aws)$`)
	collectionHost = regexp.MustCompile(`^([a-z0-9]{3,40})\.([a-z0-9-]+)\.aoss\.amazonaws\.com(?:\.cn)?$`)
)

// sinkARN returns the ARN of a sink that accepts signed requests. It takes the ARN from
// Props.SinkARNs, or builds it from the sink's URL.
func (p *Props) sinkARN(sink string) string {
	if given := p.SinkARNs[sink]; given != "" {
		return given
	}
	service, region, resource := sinkResource(p.Config.Sinks[sink].URL)
	return strings.Join([]string{"arn", *awscdk.Aws_PARTITION(), service, region, *awscdk.Aws_ACCOUNT_ID(), resource},
		":")
}

// sinkResource reads the domain or collection from the sink's address. All results are empty if the
// address does not contain it.
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
