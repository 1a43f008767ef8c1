// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/lullhq/lull/internal/aws/reach"
)

// kinds lists the kind of ARN of each option that becomes a CDK construct. All other options are
// fields of Props, and Props.ValidateIn checks them.
var kinds = map[option]reach.Kind{
	optTopics: reach.Topic, optBus: reach.Bus, optSenders: reach.Sender, optBuckets: reach.Bucket,
	optStreams: reach.Stream, optKey: reach.Key, optOperators: reach.Person, optAlarmTopic: reach.AlarmTopic,
	optTicketTopic: reach.AlarmTopic,
}

// refer reports a value that is not an ARN of the option's kind, or that a stack in this
// environment cannot use.
func (r *reader) refer(o option, env *awscdk.Environment, value string) {
	if value == "" {
		return
	}
	var at reach.Place
	if env != nil {
		at = reach.Place{Region: *env.Region, Account: *env.Account}
	}
	if problem, fix := kinds[o].Fault(value, at); problem != "" {
		r.fault(o, "names "+value+", which "+problem+": "+fix)
	}
}
