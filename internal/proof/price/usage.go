package price

import "time"

// Usage is what a stack used, in billed units. The zero Usage is nothing.
type Usage struct {
	WriteUnits      float64
	ReadUnits       float64
	QueueRequests   float64
	Invocations     float64
	LambdaGBSeconds float64
	ExpressStarts   float64
	ExpressGBSecs   float64
	Transitions     float64 // billed ones: of Standard executions
	ObjectWrites    float64
	ObjectReads     float64
}

// Line is one line of a bill.
type Line struct {
	Name    string
	Dollars float64
}

const million = 1e6

// Bill lists what the usage costs, by service.
func (l List) Bill(u Usage) []Line {
	return []Line{
		{"DynamoDB writes", u.WriteUnits * l.WriteUnits / million},
		{"DynamoDB reads", u.ReadUnits * l.ReadUnits / million},
		{"SQS", u.QueueRequests * l.QueueRequests / million},
		{"Lambda", u.Invocations*l.Invocations/million + u.LambdaGBSeconds*l.LambdaGBSecond},
		{"Step Functions", u.ExpressStarts*l.ExpressStarts/million + u.ExpressGBSecs*l.ExpressGBSecond +
			u.Transitions*l.Transitions/million},
		{"S3", u.ObjectWrites*l.ObjectWrites/million + u.ObjectReads*l.ObjectReads/million},
	}
}

// Dollars is the sum of the bill.
func (l List) Dollars(u Usage) float64 {
	sum := 0.0
	for _, line := range l.Bill(u) {
		sum += line.Dollars
	}
	return sum
}

// Sizes that the services bill by.
const (
	writeUnitBytes = 1 << 10
	readUnitBytes  = 4 << 10
	requestBytes   = 64 << 10
	expressStep    = 100 * time.Millisecond
	expressGB      = 64.0 / 1024 // the least memory billed, and more than a flight's state ever needs
)

func units(bytes, unit int) float64 { return float64(max((bytes+unit-1)/unit, 1)) }

// WriteUnits is what one write of an item uses, by the larger of its sizes before and after; an
// absent one has 0 bytes.
func WriteUnits(bytes int) float64 { return units(bytes, writeUnitBytes) }

// ReadUnits is what reading one item uses, an absent one too.
func ReadUnits(bytes int, consistent bool) float64 {
	if consistent {
		return units(bytes, readUnitBytes)
	}
	return units(bytes, readUnitBytes) / 2
}

// QueueRequests is what one call with that payload is billed as.
func QueueRequests(bytes int) float64 { return units(bytes, requestBytes) }

// ExpressGBSeconds is what one Express execution that took d is billed, beside its start.
func ExpressGBSeconds(d time.Duration) float64 {
	steps := max((d+expressStep-1)/expressStep, 1)
	return (steps * expressStep).Seconds() * expressGB
}

// LambdaGBSeconds is what one invocation that took d is billed: time in whole milliseconds.
func LambdaGBSeconds(d time.Duration, megabytes int) float64 {
	ms := max((d+time.Millisecond-1)/time.Millisecond, 1)
	return (ms * time.Millisecond).Seconds() * float64(megabytes) / 1024
}
