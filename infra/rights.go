// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/dynamodb"
)

// right is one statement of a role: actions on resources, under a name that says their purpose.
type right struct {
	sid       string // letters and digits
	actions   []string
	resources []string // if it is empty, the role does not get the right
	// only is the condition of the statement: for each operator, the keys and their values.
	only map[string]any
}

// anything is the resource of actions that AWS does not grant on single resources.
var anything = []string{"*"}

// newRole makes a role with these rights and no others. The policy is inline, so that role and
// rights are created and deleted together.
func newRole(scope constructs.Construct, id, description string, trusted awsiam.IPrincipal,
	rights []right,
) awsiam.Role {
	return awsiam.NewRole(scope, jsii.String(id), &awsiam.RoleProps{
		AssumedBy:      trusted,
		Description:    jsii.String(description),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"rights": document(rights)},
	})
}

func document(rights []right) awsiam.PolicyDocument {
	some := slices.DeleteFunc(slices.Clone(rights), func(r right) bool { return len(r.resources) == 0 })
	statements := every(some, func(r right) awsiam.PolicyStatement {
		props := &awsiam.PolicyStatementProps{
			Sid:       jsii.String(r.sid),
			Effect:    awsiam.Effect_ALLOW,
			Actions:   jsii.Strings(r.actions...),
			Resources: jsii.Strings(r.resources...),
		}
		if len(r.only) > 0 {
			props.Conditions = &r.only
		}
		return awsiam.NewPolicyStatement(props)
	})
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &statements})
}

// service returns an AWS service as a principal. The principal may only act on behalf of this
// account.
func service(name string) awsiam.IPrincipal {
	return awsiam.NewServicePrincipal(jsii.String(name), &awsiam.ServicePrincipalOpts{
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": awscdk.Aws_ACCOUNT_ID()}},
	})
}

// objects returns the ARNs of the bucket's objects below these prefixes.
func (l *Lull) objects(prefixes ...string) []string {
	return every(prefixes, func(prefix string) string { return *l.Bucket.BucketArn() + "/" + prefix + "*" })
}

// mayList returns the right to list the bucket. A function needs this right to read an object that
// may not exist: without it, S3 answers "access denied" for a missing object. The right cannot be
// limited to prefixes, because a request for an object has no prefix.
func (l *Lull) mayList() right {
	return right{sid: "List", actions: []string{"s3:ListBucket"}, resources: []string{*l.Bucket.BucketArn()}}
}

// table returns a right on the table's items.
func (l *Lull) table(sid string, actions ...string) right {
	return right{sid: sid, actions: actions, resources: []string{*l.Table.TableArn()}}
}

// waiting returns the right to read the table's index.
func (l *Lull) waiting(sid string) right {
	return right{
		sid: sid, actions: []string{"dynamodb:Query"},
		resources: []string{*l.Table.TableArn() + "/index/" + dynamodb.IndexName},
	}
}

// The actions on the customer's key that a role needs. SQS and S3 encrypt with a data key, which
// they decrypt to read. Only DynamoDB encrypts with the customer's key itself, in the name of the
// writer.
var (
	decrypts = []string{"kms:Decrypt", "kms:DescribeKey"}
	seals    = []string{"kms:Decrypt", "kms:GenerateDataKey"}
	rewrites = []string{"kms:DescribeKey", "kms:Encrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo"}
)

// key returns the right to use the customer's key through the services that encrypt with the key.
// If there is no such key, it returns no right.
func (l *Lull) key(sid string, actions []string, services ...string) []right {
	if l.props.Key == nil {
		return nil
	}
	return []right{through(sid, actions, []string{*l.props.Key.KeyArn()}, services...)}
}

// keys returns the rights that a writer of rows, messages and objects needs on the customer's key.
func (l *Lull) keys() []right {
	return append(l.key("UseKey", seals, "dynamodb", "s3", "sqs"), l.key("UseTableKey", rewrites, "dynamodb")...)
}

// through returns a right on keys that is limited to calls by these services in the role's name.
func through(sid string, actions, keys []string, services ...string) right {
	via := every(services, func(service string) string {
		return service + "." + *awscdk.Aws_REGION() + "." + *awscdk.Aws_URL_SUFFIX()
	})
	return right{
		sid: sid, actions: actions, resources: keys,
		only: map[string]any{"StringEquals": map[string]any{"kms:ViaService": via}},
	}
}

// arn builds the ARN of a resource of this account and region from its name.
func arn(service, resource string) string {
	return strings.Join([]string{
		"arn", *awscdk.Aws_PARTITION(), service, *awscdk.Aws_REGION(),
		*awscdk.Aws_ACCOUNT_ID(), resource,
	}, ":")
}
