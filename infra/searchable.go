// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
)

// newSearchable makes the function behind the stack's URL, and the URL. Only principals with the
// rights of [Lull.askSearchable] may call the URL.
func (l *Lull) newSearchable(code awslambda.Code) {
	const purpose = "lull: says whether a search finds a version of a document"
	p, n := l.props, names.Of(l.props.Config)
	log := awslogs.NewLogGroup(l.Construct, jsii.String("SearchableLog"), &awslogs.LogGroupProps{
		LogGroupName: jsii.String("/aws/lambda/" + n.Searchable()), Retention: p.logRetention(),
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	role := newRole(l.Construct, "SearchableRole", purpose,
		awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil), l.searchableRights())
	env := map[string]*string{
		lambda.EnvTable: l.Table.TableName(), lambda.EnvLogLevel: jsii.String(p.logLevel()),
	}
	if p.template != nil {
		env[lambda.EnvSettings] = jsii.String(forSettings)
	}
	fn := awslambda.NewFunction(l.Construct, jsii.String("Searchable"), &awslambda.FunctionProps{
		FunctionName: jsii.String(n.Searchable()), Description: jsii.String(purpose),
		Runtime: awslambda.Runtime_PROVIDED_AL2023(), Architecture: p.lambdaArchitecture(),
		Handler: jsii.String(release.Program), Code: code, Role: role, LogGroup: log,
		LoggingFormat: awslambda.LoggingFormat_JSON, SystemLogLevelV2: awslambda.SystemLogLevel_WARN,
		ApplicationLogLevelV2: p.applicationLevel(),
		MemorySize:            jsii.Number(float64(names.Searchable.Megabytes())),
		Timeout:               seconds(lambda.SearchableTimeout), Environment: &env,
		// Questions that wait must not use the concurrency of the functions that write.
		ReservedConcurrentExecutions: jsii.Number(float64(*p.Config.SearchableCalls)),
	})
	address := fn.AddFunctionUrl(&awslambda.FunctionUrlOptions{AuthType: awslambda.FunctionUrlAuthType_AWS_IAM})
	l.output(l.Construct, "SearchableUrl", address.Url())
	scope := constructs.NewConstruct(l.Construct, jsii.String("SearchableAlarms"))
	for _, a := range alarms.OfSearchable(p.Config) {
		l.alarm(scope, "lull "+p.Config.Stack+", searchable", n.Alarm("", a.Kind)+"-searchable", a)
	}
}

// searchableRights allows the function to read rows of documents and the health rows of sinks, by
// their keys.
func (l *Lull) searchableRights() []right {
	rows := l.table("Rows", "dynamodb:BatchGetItem")
	rows.only = map[string]any{"ForAllValues:StringNotLike": map[string][]string{
		"dynamodb:LeadingKeys": {deadRows, messageRows, objectRows + "*", runRows + "*", schedRows},
	}}
	return append([]right{rows, {
		sid: "Log", actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"},
		resources: []string{arn("logs", "log-group:/aws/lambda/"+names.Of(l.props.Config).Searchable()+":*")},
	}}, l.key("ReadKey", decrypts, "dynamodb")...)
}

// askSearchable allows calling the URL. It returns no right if the stack has no URL.
func (l *Lull) askSearchable() []right {
	if l.props.Config.SearchableCalls == nil {
		return nil
	}
	fn := []string{arn("lambda", "function:"+names.Of(l.props.Config).Searchable())}
	return []right{
		{sid: "AskSearchable", actions: []string{"lambda:InvokeFunctionUrl"}, resources: fn},
		{ // https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html: both actions are needed
			sid: "AskSearchableOnlyByUrl", actions: []string{"lambda:InvokeFunction"}, resources: fn,
			only: map[string]any{"Bool": map[string]any{"lambda:InvokedViaFunctionUrl": "true"}},
		},
	}
}
