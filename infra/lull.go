// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/deploy/names"
)

// Lull is the construct with all of lull's resources. Its parts are exported so that a stack can
// add to them. Do not replace them.
type Lull struct {
	constructs.Construct

	// Table is created by the stack, unless the settings name an existing one.
	Table  awsdynamodb.ITableV2
	Bucket awss3.Bucket
	Sinks  map[string]*Sink
	// Operators are the roles of the command line, by name.
	Operators map[string]Operator

	props     *Props
	alarmARNs []string // the alarms on the dashboard
}

// NewLull builds lull below scope. It panics if Props.ValidateIn returns faults for the account and
// region of scope's stack, before it builds anything. It also panics if it cannot copy the
// binaries. An account and region can have only one lull with the same setting `stack`, because the
// names of resources depend only on that setting.
func NewLull(scope constructs.Construct, id string, props *Props) *Lull {
	if err := props.Validate(); err != nil {
		panic(fmt.Errorf("lull cannot be deployed:\n%w", err))
	}
	if err := props.validatePlace(placeOf(scope)); err != nil {
		panic(fmt.Errorf("lull cannot be deployed:\n%w", err))
	}
	l := &Lull{Construct: constructs.NewConstruct(scope, jsii.String(id)), Sinks: make(map[string]*Sink), props: props}
	l.tag(l.Construct, stackTag, props.Config.Stack)
	l.Table = newTable(l.Construct, props)
	l.Bucket = newBucket(l.Construct, props)
	var code assets
	switch {
	case props.StateOnly:
	case props.template != nil:
		code = make(assets)
		for _, of := range props.programs() {
			code[of] = props.template(of)
		}
	default:
		dir, err := stage(props)
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		code = props.newAssets(dir)
	}
	for _, name := range sinkNames(props.Config) {
		l.Sinks[name] = newSink(l, name, code)
	}
	if props.StateOnly {
		return l
	}
	if props.Config.CommitFeed {
		l.newFeed(code[names.Feed.Program("")])
	}
	if props.Config.SearchableCalls != nil {
		l.newSearchable(code[names.Searchable.Program("")])
	}
	if len(props.works()) > 0 {
		l.newJob(code[names.Job.Program("")])
	}
	l.newUpstreams()
	l.newOperators()
	for _, name := range sinkNames(props.Config) {
		l.Sinks[name].tellSenders()
	}
	l.newAlarms()
	if props.Rollout.shifts() {
		l.newRollouts()
	}
	l.newDashboard()
	l.newOutputs()
	return l
}

// The tags of all resources. A bill can be split by them, if they are activated as tags for the
// allocation of costs.
const (
	stackTag = "lull:stack"
	sinkTag  = "lull:sink" // of the resources that belong to one sink
)

// tag adds a tag to all resources of a construct that take tags. Not all regions take a tag of a
// dashboard.
func (l *Lull) tag(of constructs.Construct, key, value string) {
	awscdk.Tags_Of(of).Add(&key, &value, &awscdk.TagProps{
		ExcludeResourceTypes: jsii.Strings("AWS::CloudWatch::Dashboard"),
	})
}

// raw returns the CloudFormation resource of a construct, which has properties that the construct
// lacks.
func raw[T any](of constructs.IConstruct) T {
	r, ok := of.Node().DefaultChild().(T)
	if !ok {
		// cannot happen: the version of CDK is pinned
		panic(fmt.Sprintf("%s is made of %T", *of.Node().Path(), of.Node().DefaultChild()))
	}
	return r
}
