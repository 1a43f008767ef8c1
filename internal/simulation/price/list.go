// SPDX-License-Identifier: Apache-2.0

package price

// List is a price list in dollars.
type List struct {
	Region string
	Date   string // the month of the prices

	WriteUnits      float64 // DynamoDB on demand, a million write units of 1 KB, including refused writes
	ReadUnits       float64 // DynamoDB on demand, a million read units of 4 KB; eventually consistent reads take half
	WriteCapacity   float64 // DynamoDB provisioned, one write unit a second for an hour
	ReadCapacity    float64 // DynamoDB provisioned, one read unit a second for an hour
	QueueRequests   float64 // SQS standard, a million requests of up to ten messages and 64 KB
	Invocations     float64 // Lambda, a million invocations
	LambdaGBSecond  float64 // Lambda on arm64, a gigabyte for a second
	ExpressStarts   float64 // Step Functions Express, a million executions
	ExpressGBSecond float64 // memory in steps of 64 MB, time in steps of 100 ms
	Transitions     float64 // Step Functions Standard, a million state transitions
	ObjectWrites    float64 // S3, a million PUT, POST or LIST requests
	ObjectReads     float64 // S3, a million GET requests; deletions cost nothing

	// The following prices do not depend on requests. These prices are per month unless the comment
	// says otherwise.
	LogGB       float64 // CloudWatch Logs, a GB of new log data: the first tier of Lambda's logs
	LogStored   float64 // CloudWatch Logs, a GB of stored log data
	Metric      float64 // CloudWatch, a custom metric, billed by the hours in which it is written
	AlarmMetric float64 // CloudWatch, a standard alarm, for each metric that the alarm uses
	Dashboard   float64
	Key         float64 // KMS, a key
	KeyRequests float64 // KMS, a million requests
	Secret      float64 // Secrets Manager, a secret
	TableGB     float64 // DynamoDB, a GB of rows with point-in-time recovery of the same size
	ObjectGB    float64 // S3 Standard, a GB of objects
}

// USEast1 has the first-tier prices that every figure in docs/numbers.md uses.
var USEast1 = List{
	Region: "us-east-1",
	Date:   "2026",

	WriteUnits:      0.625,
	ReadUnits:       0.125,
	WriteCapacity:   0.00065,
	ReadCapacity:    0.00013,
	QueueRequests:   0.40,
	Invocations:     0.20,
	LambdaGBSecond:  0.0000133334,
	ExpressStarts:   1.00,
	ExpressGBSecond: 0.00001667,
	Transitions:     25.00,
	ObjectWrites:    5.00,
	ObjectReads:     0.40,

	LogGB:       0.50,
	LogStored:   0.03,
	Metric:      0.30,
	AlarmMetric: 0.10,
	Dashboard:   3.00,
	Key:         1.00,
	KeyRequests: 3.00,
	Secret:      0.40,
	TableGB:     0.45,
	ObjectGB:    0.023,
}

// Sources lists the pages with the prices.
var Sources = []string{
	"https://aws.amazon.com/dynamodb/pricing/on-demand/", "https://aws.amazon.com/dynamodb/pricing/provisioned/",
	"https://aws.amazon.com/sqs/pricing/",
	"https://aws.amazon.com/lambda/pricing/", "https://aws.amazon.com/step-functions/pricing/",
	"https://aws.amazon.com/s3/pricing/", "https://aws.amazon.com/cloudwatch/pricing/",
	"https://aws.amazon.com/kms/pricing/", "https://aws.amazon.com/secrets-manager/pricing/",
}
