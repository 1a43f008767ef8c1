// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"

	"github.com/lullhq/lull/internal/aws/reach"
	"github.com/lullhq/lull/internal/config"
)

// reference is the name of an AWS resource in the Props or the settings, and the field that
// contains the name. If infra/cmd copies the field from a variable, variable names it.
type reference struct {
	field, value string
	kind         reach.Kind
	variable     string
}

// check adds a fault if a stack in this place cannot use the referenced resource.
func (r reference) check(fs *faultList, at reach.Place) {
	problem, fix := r.kind.Fault(r.value, at)
	if r.variable != "" {
		fix += " (" + r.variable + ")"
	}
	if problem != "" {
		fs.add(r.field, r.value, problem, fix)
	}
}

// ValidateIn returns the faults of Validate. It also returns a fault for each ARN that a stack in
// this account and region cannot use. If both arguments are empty, the stack may be deployed
// anywhere, and ValidateIn is the same as Validate.
func (p *Props) ValidateIn(account, region string) error {
	err := p.Validate()
	if p == nil || p.Config == nil || account == "" || region == "" {
		return err
	}
	return errors.Join(err, p.validatePlace(reach.Place{Region: region, Account: account}))
}

// validatePlace returns the faults that depend on the account and region of the stack.
func (p *Props) validatePlace(at reach.Place) error {
	if at == (reach.Place{}) {
		return nil
	}
	var fs faultList
	for _, r := range append(p.references(), p.inSettings()...) {
		if problem, _ := r.kind.Fault(r.value, reach.Place{}); problem == "" { // otherwise Validate says so
			r.check(&fs, at)
		}
	}
	for _, name := range sinkNames(p.Config) {
		s := p.Config.Sinks[name]
		_, of, _ := sinkResource(s.URL)
		of = cmp.Or(reach.Region(p.SinkARNs[name]), of)
		if signed := cmp.Or(s.Auth.Region, at.Region); s.Auth.Kind == config.AuthSigV4 && of != "" && of != signed {
			fs.add("sinks."+name+".auth.region", s.Auth.Region, "has requests signed for "+signed+", and the sink is in "+of,
				"write "+of)
		}
	}
	return errors.Join(fs...)
}

// checkReferences reports ARNs that no stack can use, in any account or region.
func (p *Props) checkReferences(fs *faultList) {
	for _, r := range p.references() {
		r.check(fs, reach.Place{})
	}
}

// placeOf returns the account and region of a construct's stack. For a stack without an
// environment, it returns an empty place.
func placeOf(scope constructs.Construct) reach.Place {
	stack := awscdk.Stack_Of(scope)
	if *awscdk.Token_IsUnresolved(stack.Region()) || *awscdk.Token_IsUnresolved(stack.Account()) {
		return reach.Place{}
	}
	return reach.Place{Region: *stack.Region(), Account: *stack.Account()}
}

// references returns all AWS resources that the Props name. A test in infra/cmd fails if a field is
// missing here.
func (p *Props) references() []reference {
	var all []reference
	// add skips a field that is not set.
	add := func(field, value string, kind reach.Kind) {
		if value != "" {
			all = append(all, reference{field: field, value: value, kind: kind})
		}
	}
	for i, u := range p.Upstreams {
		at := fmt.Sprintf("Upstreams[%d]", i)
		if u.Topic != nil {
			add(at+".Topic", *u.Topic.TopicArn(), reach.Topic)
		}
		if u.Bus != nil {
			add(at+".Bus", *u.Bus.EventBusArn(), reach.Bus)
		}
		add(at+".SenderARN", u.SenderARN, reach.Origin)
		for _, who := range principalARNs(u.Sender) {
			add(at+".Sender", who, reach.Sender)
		}
		if u.Pipe != nil {
			all = append(all, u.Pipe.references(at+".Pipe")...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.SinkARNs)) {
		all = append(all, reference{"SinkARNs[" + name + "]", p.SinkARNs[name], reach.Engine, "LULL_SINK_ARNS"})
	}
	all = append(all, p.Vpc.references("Vpc", "LULL_VPC_SUBNETS", "LULL_VPC_SECURITY_GROUPS")...)
	for _, key := range p.ReadKeyARNs {
		all = append(all, reference{"ReadKeyARNs", key, reach.ReadKey, "LULL_READ_KMS_KEYS"})
	}
	if p.Key != nil {
		add("Key", *p.Key.KeyArn(), reach.Key)
	}
	for _, who := range principalARNs(p.Operators) {
		add("Operators", who, reach.Person)
	}
	if p.CommitBus != nil {
		add("CommitBus", *p.CommitBus.EventBusArn(), reach.CommitBus)
	}
	if p.AlarmTopic != nil {
		add("AlarmTopic", *p.AlarmTopic.TopicArn(), reach.AlarmTopic)
	}
	if p.TicketTopic != nil {
		add("TicketTopic", *p.TicketTopic.TopicArn(), reach.AlarmTopic)
	}
	return all
}

// inSettings returns the AWS resources that the settings name. Config.Validate has already checked
// the form of these names.
func (p *Props) inSettings() []reference {
	var all []reference
	add := func(field, value string, kind reach.Kind) {
		if value != "" {
			all = append(all, reference{field: field, value: value, kind: kind})
		}
	}
	for _, name := range sinkNames(p.Config) {
		add("sinks."+name+".auth.secretARN", p.Config.Sinks[name].Auth.SecretARN, reach.Secret)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Config.Sources)) {
		if f := p.Config.Sources[name].Fetch; f != nil {
			add("sources."+name+".fetch.headers.secretARN", f.Headers.SecretARN, reach.Secret)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Config.Collections)) {
		if e := p.Config.Collections[name].Enrich; e != nil {
			add("collections."+name+".enrich.functionARN", e.FunctionARN, reach.Function)
			add("collections."+name+".enrich.headers.secretARN", e.Headers.SecretARN, reach.Secret)
		}
	}
	return all
}

// references returns the AWS resources that a pipe names. It includes an empty reference if the
// pipe's source requires it.
func (p *Pipe) references(at string) []reference {
	var all []reference
	add := func(field, value string, kind reach.Kind, needed bool) {
		if needed || value != "" {
			all = append(all, reference{field: at + "." + field, value: value, kind: kind})
		}
	}
	add("DynamoDB", p.DynamoDB, reach.DynamoDBStream, false)
	add("Kinesis", p.Kinesis, reach.KinesisStream, false)
	if k := p.Kafka; k != nil {
		add("Kafka.Cluster", k.Cluster, reach.Cluster, false)
		add("Kafka.SecretARN", k.SecretARN, reach.Secret, false)
		add("Kafka.RootSecretARN", k.RootSecretARN, reach.Secret, false)
		all = append(all, k.Vpc.references(at+".Kafka.Vpc", "", "")...)
	}
	for _, b := range []struct {
		field  string
		broker *Broker
	}{{"RabbitMQ", p.RabbitMQ}, {"ActiveMQ", p.ActiveMQ}} {
		if b.broker != nil {
			add(b.field+".ARN", b.broker.ARN, reach.Broker, true)
			add(b.field+".SecretARN", b.broker.SecretARN, reach.Secret, true)
		}
	}
	return all
}

// references returns the ids of a VPC, with the variables of infra/cmd that contain the ids.
func (v *Vpc) references(at, subnets, groups string) []reference {
	var all []reference
	if v != nil {
		for _, id := range v.SubnetIDs {
			all = append(all, reference{at + ".SubnetIDs", id, reach.Subnet, subnets})
		}
		for _, id := range v.SecurityGroupIDs {
			all = append(all, reference{at + ".SecurityGroupIDs", id, reach.Group, groups})
		}
	}
	return all
}

// principalARNs returns the ARNs and accounts of a principal. For a service, and for the principal
// that means everyone, the list is empty.
func principalARNs(who awsiam.IPrincipal) (all []string) {
	if who != nil {
		for kind, list := range *who.PolicyFragment().PrincipalJson() {
			for _, one := range *list {
				if kind == "AWS" && *one != "*" {
					all = append(all, *one)
				}
			}
		}
	}
	return all
}
