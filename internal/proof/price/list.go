package price

// List is a price list in dollars.
type List struct {
	Region string
	Date   string // the month of the prices

	WriteUnits      float64 // DynamoDB on demand, a million: 1 KB each, refused conditions too
	ReadUnits       float64 // a million: 4 KB each, half of one where eventually consistent
	QueueRequests   float64 // SQS standard, a million: up to ten messages and 64 KB each
	Invocations     float64 // Lambda, a million
	LambdaGBSecond  float64 // arm64
	ExpressStarts   float64 // Step Functions Express, a million executions
	ExpressGBSecond float64 // memory in steps of 64 MB, time in steps of 100 ms
	Transitions     float64 // Step Functions Standard, a million state transitions
	ObjectWrites    float64 // S3 PUT, POST, LIST, a million
	ObjectReads     float64 // S3 GET, a million; deletions cost nothing
}

// USEast1 is the list that every figure in docs/numbers.md uses: the first tier, on demand.
var USEast1 = List{
	Region: "us-east-1",
	Date:   "2026",

	WriteUnits:      0.625,
	ReadUnits:       0.125,
	QueueRequests:   0.40,
	Invocations:     0.20,
	LambdaGBSecond:  0.0000133334,
	ExpressStarts:   1.00,
	ExpressGBSecond: 0.00001667,
	Transitions:     25.00,
	ObjectWrites:    5.00,
	ObjectReads:     0.40,
}
