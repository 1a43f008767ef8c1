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

// right is one statement of a role: these actions on these resources, and what they are for.
type right struct {
	sid       string // letters and digits
	actions   []string
	resources []string // without any, no role has the right
	// only are conditions: operator, key, values.
	only map[string]any
}

// anything is for actions that AWS does not grant on single resources.
var anything = []string{"*"}

// newRole is a role with these rights and no others. Its policy is inline, so that role and rights
// come and go together.
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

// service is an AWS service as a principal, on behalf of this account only.
func service(name string) awsiam.IPrincipal {
	return awsiam.NewServicePrincipal(jsii.String(name), &awsiam.ServicePrincipalOpts{
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": awscdk.Aws_ACCOUNT_ID()}},
	})
}

// objects are the objects of the bucket below prefixes.
func (l *Lull) objects(prefixes ...string) []string {
	return every(prefixes, func(prefix string) string { return *l.Bucket.BucketArn() + "/" + prefix + "*" })
}

// mayList is the right to list the bucket. Whoever reads an object that may be gone needs it:
// without it S3 answers "denied" for a missing one. Limited to prefixes it would not serve, because
// a request for an object has none.
func (l *Lull) mayList() right {
	return right{sid: "List", actions: []string{"s3:ListBucket"}, resources: []string{*l.Bucket.BucketArn()}}
}

// table is a right on the table's items.
func (l *Lull) table(sid string, actions ...string) right {
	return right{sid: sid, actions: actions, resources: []string{*l.Table.TableArn()}}
}

// waiting is the right to read the table's index.
func (l *Lull) waiting(sid string) right {
	return right{
		sid: sid, actions: []string{"dynamodb:Query"},
		resources: []string{*l.Table.TableArn() + "/index/" + dynamodb.IndexName},
	}
}

// What a role does with the customer's key. A message or an object is written with a data key, and
// read by decrypting that. Only DynamoDB encrypts with the key itself, in the name of who writes.
var (
	decrypts = []string{"kms:Decrypt", "kms:DescribeKey"}
	seals    = []string{"kms:Decrypt", "kms:GenerateDataKey"}
	rewrites = []string{"kms:DescribeKey", "kms:Encrypt", "kms:ReEncryptFrom", "kms:ReEncryptTo"}
)

// key is the right to use the customer's key through the services that encrypt with it, none where
// there is no such key.
func (l *Lull) key(sid string, actions []string, services ...string) []right {
	if l.props.Key == nil {
		return nil
	}
	return []right{through(sid, actions, []string{*l.props.Key.KeyArn()}, services...)}
}

// keys are the customer's key as who writes rows, messages and objects needs it.
func (l *Lull) keys() []right {
	return append(l.key("UseKey", seals, "dynamodb", "s3", "sqs"), l.key("UseTableKey", rewrites, "dynamodb")...)
}

// through is a right on keys that only these services may use in the role's name.
func through(sid string, actions, keys []string, services ...string) right {
	via := every(services, func(service string) string {
		return service + "." + *awscdk.Aws_REGION() + "." + *awscdk.Aws_URL_SUFFIX()
	})
	return right{
		sid: sid, actions: actions, resources: keys,
		only: map[string]any{"StringEquals": map[string]any{"kms:ViaService": via}},
	}
}

// arn is the ARN of a resource of this account and region, from its name alone.
func arn(service, resource string) string {
	return strings.Join([]string{
		"arn", *awscdk.Aws_PARTITION(), service, *awscdk.Aws_REGION(),
		*awscdk.Aws_ACCOUNT_ID(), resource,
	}, ":")
}
