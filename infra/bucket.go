package infra

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/names"
)

// flightDays is how long a flight's objects stay where nobody deletes them: longer than a queue can
// keep their messages, which is 14 days. Dead letters and scheduled events never expire.
const flightDays = 15

// formerDays is how long what was deleted or written over can be had back: as long as a dead letter
// may wait in its queue.
const formerDays = 14

// former is the rule for what was deleted or written over below a prefix.
func former(prefix string) *awss3.LifecycleRule {
	return &awss3.LifecycleRule{
		Id: jsii.String("former-" + strings.TrimSuffix(prefix, "/")), Prefix: jsii.String(prefix),
		NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(formerDays)),
		ExpiredObjectDeleteMarker:   jsii.Bool(true),
	}
}

// archiveDays is how long the archive keeps an object. The rule stays where nothing is archived any
// more: what was archived before goes then.
func archiveDays(c *config.Config) float64 {
	return max(1, c.Archive.Keep.Hours()/24)
}

// newBucket is the bucket of flights, dead letters, scheduled events and the archive.
func newBucket(scope constructs.Construct, p *Props) awss3.Bucket {
	props := &awss3.BucketProps{
		BucketName:        jsii.String(names.Of(p.Config).Bucket(*awscdk.Aws_ACCOUNT_ID(), *awscdk.Aws_REGION())),
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        jsii.Bool(p.policies()),
		// A dead letter is the only copy of its message: what is deleted or written over stays a while.
		Versioned: jsii.Bool(true),
		LifecycleRules: &[]*awss3.LifecycleRule{
			{
				Id:         jsii.String("flights"),
				Prefix:     jsii.String(s3.FlightPrefix),
				Expiration: awscdk.Duration_Days(jsii.Number(flightDays)),
				// Each flight leaves one, and nobody asks for it.
				NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(1)),
			},
			{
				Id: jsii.String("archive"), Prefix: jsii.String(s3.ArchivePrefix),
				Expiration:                  awscdk.Duration_Days(jsii.Number(archiveDays(p.Config))),
				NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(1)),
			},
			former(s3.DeadPrefix), former(s3.SchedulePrefix),
		},
		RemovalPolicy: p.removal(),
	}
	if p.policies() {
		props.MinimumTLSVersion = jsii.Number(1.2)
	}
	if p.Key != nil {
		props.Encryption, props.EncryptionKey = awss3.BucketEncryption_KMS, p.Key
		props.BucketKeyEnabled = jsii.Bool(true) // one call to KMS for many objects
	}
	return awss3.NewBucket(scope, jsii.String("Bucket"), props)
}
