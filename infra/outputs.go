// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/deploy/names"
)

// newOutputs makes the stack's outputs: the queues to send to, the table and the bucket, and the
// roles. The names of outputs do not depend on where the construct is in the app. Examples are
// LullTable, and LullNewsArchiveLiveQueue for a sink named news-archive.
func (l *Lull) newOutputs() {
	l.output(l.Construct, "Table", l.Table.TableName())
	l.output(l.Construct, "Bucket", l.Bucket.BucketName())
	for _, name := range []string{Publisher, Reader, Repairer} {
		l.output(l.Construct, title(name)+"Role", l.Operators[name].Role.RoleArn())
	}
	for _, name := range sinkNames(l.props.Config) {
		s, sink := l.Sinks[name], title(name)
		l.output(s.scope, sink+"LiveQueue", s.Queues.Live.QueueUrl())
		l.output(s.scope, sink+"BulkQueue", s.Queues.Bulk.QueueUrl())
		l.output(s.scope, sink+"DeadQueue", s.Queues.Dead.QueueUrl())
		for _, kind := range machineKinds {
			l.output(s.scope, sink+title(string(kind))+"Machine", s.Machines[kind].AttrArn())
		}
		for _, f := range names.Functions() {
			l.output(s.scope, sink+title(string(f)), s.Functions[f].Alias.FunctionArn())
		}
	}
}

func (l *Lull) output(scope constructs.Construct, id string, value *string) {
	awscdk.NewCfnOutput(scope, jsii.String("Out"+id),
		&awscdk.CfnOutputProps{Value: value}).OverrideLogicalId(jsii.String("Lull" + id))
}

// title joins the words of a hyphenated name, and capitalises each word.
func title(name string) string {
	var b strings.Builder
	for _, word := range strings.Split(name, "-") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
