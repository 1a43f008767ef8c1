package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/lullhq/lull/internal/aws/reach"
)

// kinds are the kinds of the options that become CDK constructs. The others are in Props as they
// are, and Props.ValidateIn looks at them.
var kinds = map[option]reach.Kind{
	optTopics: reach.Topic, optBus: reach.Bus, optSenders: reach.Sender, optBuckets: reach.Bucket,
	optStreams: reach.Stream, optKey: reach.Key, optOperators: reach.Person, optAlarmTopic: reach.AlarmTopic,
}

// refer reports a value that is not of the option's kind, or that AWS does not take from where the
// stack is.
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
