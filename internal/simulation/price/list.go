package price

// List is a price list in dollars.
type List struct {
	Region string
	Date   string // the month of the prices

	WriteUnits      float64 // DynamoDB on demand, a million: 1 KB each, refused conditions too
	ReadUnits       float64 // a million: 4 KB each, half of one where eventually consistent
	WriteCapacity   float64 // DynamoDB provisioned, a write unit a second for an hour
	ReadCapacity    float64 // a read unit a second for an hour
	QueueRequests   float64 // SQS standard, a million: up to ten messages and 64 KB each
	Invocations     float64 // Lambda, a million
	LambdaGBSecond  float64 // arm64
	ExpressStarts   float64 // Step Functions Express, a million executions
	ExpressGBSecond float64 // memory in steps of 64 MB, time in steps of 100 ms
	Transitions     float64 // Step Functions Standard, a million state transitions
	ObjectWrites    float64 // S3 PUT, POST, LIST, a million
	ObjectReads     float64 // S3 GET, a million; deletions cost nothing

	// These are costs that do not depend on requests, per month unless said otherwise.
	LogGB       float64 // CloudWatch Logs, a GB that is taken in: the first tier of Lambda's logs
	LogStored   float64 // a GB that is kept
	Metric      float64 // CloudWatch, a custom metric, by the hours in which it is written
	AlarmMetric float64 // a standard alarm, for each metric that it looks at
	Dashboard   float64
	Key         float64 // KMS
	KeyRequests float64 // KMS, a million
	Secret      float64 // Secrets Manager
	TableGB     float64 // DynamoDB: the rows and, as much of them, point-in-time recovery
	ObjectGB    float64 // S3 Standard
}

// USEast1 is the list that every figure in docs/numbers.md uses: the first tier.
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

// Sources are the pages that the prices are from.
var Sources = []string{
	"https://aws.amazon.com/dynamodb/pricing/on-demand/", "https://aws.amazon.com/dynamodb/pricing/provisioned/",
	"https://aws.amazon.com/sqs/pricing/",
	"https://aws.amazon.com/lambda/pricing/", "https://aws.amazon.com/step-functions/pricing/",
	"https://aws.amazon.com/s3/pricing/", "https://aws.amazon.com/cloudwatch/pricing/",
	"https://aws.amazon.com/kms/pricing/", "https://aws.amazon.com/secrets-manager/pricing/",
}
