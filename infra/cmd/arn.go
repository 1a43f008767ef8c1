package main

import "regexp"

// shape is what an option takes: an ARN or an id of one kind, and how it is written. CloudFormation
// would find a wrong one half an hour later, or never: a policy that names another service's
// resource is a valid policy.
type shape struct {
	pattern *regexp.Regexp
	written string
}

// The shapes. A partition is aws, aws-cn, aws-us-gov and so on.
var (
	aTopic = shape{
		regexp.MustCompile(`^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?$`),
		"arn:aws:sns:REGION:ACCOUNT:NAME",
	}
	aBucket = shape{regexp.MustCompile(`^arn:aws[a-z-]*:s3:::[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`), "arn:aws:s3:::NAME"}
	aStream = shape{
		regexp.MustCompile(`^arn:aws[a-z-]*:(dynamodb:[a-z0-9-]+:[0-9]{12}:table/[A-Za-z0-9_.-]+/stream/[^\s]+|` +
			`kinesis:[a-z0-9-]+:[0-9]{12}:stream/[A-Za-z0-9_.-]+(/consumer/[^\s]+)?)$`),
		"arn:aws:dynamodb:REGION:ACCOUNT:table/NAME/stream/TIME or arn:aws:kinesis:REGION:ACCOUNT:stream/NAME",
	}
	aBus = shape{
		regexp.MustCompile(`^(arn:aws[a-z-]*:events:[a-z0-9-]+:[0-9]{12}:event-bus/)?[A-Za-z0-9_./-]{1,256}$`),
		"its name, or arn:aws:events:REGION:ACCOUNT:event-bus/NAME",
	}
	aKey = shape{
		regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$`),
		"arn:aws:kms:REGION:ACCOUNT:key/ID (an alias has no policy of its own)",
	}
	aSubnet = shape{regexp.MustCompile(`^subnet-[a-z0-9]+$`), "subnet-ID"}
	aGroup  = shape{regexp.MustCompile(`^sg-[a-z0-9]+$`), "sg-ID"}
	aPerson = shape{
		regexp.MustCompile(
			`^arn:aws[a-z-]*:(iam|sts)::[0-9]{12}:(root|(role|user|assumed-role)/[A-Za-z0-9_+=,.@/-]+)$`),
		"arn:aws:iam::ACCOUNT:role/NAME",
	}
	aSender = shape{regexp.MustCompile(`^([0-9]{12}|` + aPerson.pattern.String()[1:len(aPerson.pattern.String())-1] +
		`)$`), aPerson.written + ", or an account of twelve digits"}
)

// holds reports a value that has not the shape.
func (r *reader) holds(o option, s shape, value string) {
	if value != "" && !s.pattern.MatchString(value) {
		r.fault(o, "takes "+s.written+", not "+value)
	}
}
