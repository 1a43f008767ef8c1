// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
)

// flightDays is how long the objects of a flight are kept if lull does not delete them. It is more
// than the 14 days that a queue can keep a message. Dead letters and scheduled events never expire.
const flightDays = 15

// formerDays is how long a deleted or overwritten object can be restored. A dead letter may wait in
// its queue for the same number of days.
const formerDays = 14

// formerVersions returns the rule that deletes the old versions of objects below a prefix, and the
// delete markers that remain. A listing has to skip each delete marker, and prune lists all flights
// from the first key. S3 does not accept ExpiredObjectDeleteMarker in a rule that also expires
// objects, so a prefix has a second rule for the markers.
func formerVersions(prefix string, days float64) *awss3.LifecycleRule {
	return &awss3.LifecycleRule{
		Id: jsii.String("former-" + strings.TrimSuffix(prefix, "/")), Prefix: jsii.String(prefix),
		NoncurrentVersionExpiration: awscdk.Duration_Days(jsii.Number(days)),
		ExpiredObjectDeleteMarker:   jsii.Bool(true),
	}
}

// archiveDays is how long the archive keeps an object. If the archive is turned off, objects that
// were archived earlier still expire, after a day.
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
		// A dead letter is the only copy of its message. So the bucket keeps a deleted or
		// overwritten dead letter for some days.
		Versioned: jsii.Bool(true),
		LifecycleRules: &[]*awss3.LifecycleRule{
			{
				Id:         jsii.String("flights"),
				Prefix:     jsii.String(s3.FlightPrefix),
				Expiration: awscdk.Duration_Days(jsii.Number(flightDays)),
			},
			{
				Id: jsii.String("archive"), Prefix: jsii.String(s3.ArchivePrefix),
				Expiration: awscdk.Duration_Days(jsii.Number(archiveDays(p.Config))),
			},
			// Each flight leaves an old version of its manifest, which nothing needs.
			formerVersions(s3.FlightPrefix, 1), formerVersions(s3.ArchivePrefix, 1),
			formerVersions(s3.DeadPrefix, formerDays), formerVersions(s3.SchedulePrefix, formerDays),
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
