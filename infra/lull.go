package infra

import (
	"fmt"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/names"
)

// Lull is the whole of lull as a construct. Its parts are exported so that a stack can add to them,
// never to replace them.
type Lull struct {
	constructs.Construct

	// Table is the stack's own, or the one that the settings name.
	Table  awsdynamodb.ITableV2
	Bucket awss3.Bucket
	Sinks  map[string]*Sink
	// Operators are the roles of the command line, by name.
	Operators map[string]Operator

	props     *Props
	alarmARNs []string // for the dashboard
}

// NewLull builds lull below scope. It panics where Props.Validate has faults, before anything is
// built, and where the binaries cannot be copied. There is at most one with the same setting
// `stack` in an account and region: its names are fixed.
func NewLull(scope constructs.Construct, id string, props *Props) *Lull {
	if err := props.Validate(); err != nil {
		panic(fmt.Errorf("lull cannot be deployed:\n%w", err))
	}
	l := &Lull{Construct: constructs.NewConstruct(scope, jsii.String(id)), Sinks: make(map[string]*Sink), props: props}
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
	l.newUpstreams()
	l.newOperators()
	l.newAlarms()
	l.newDashboard()
	l.newOutputs()
	return l
}

// raw is the CloudFormation resource of a construct, for what the construct itself does not offer.
func raw[T any](of constructs.IConstruct) T {
	r, ok := of.Node().DefaultChild().(T)
	if !ok {
		// CDK is pinned: cannot happen
		panic(fmt.Sprintf("%s is made of %T", *of.Node().Path(), of.Node().DefaultChild()))
	}
	return r
}
