package price

import "time"

// Usage is a stack's usage in billed units. The zero Usage is nothing.
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

// Line is the sum of one service.
type Line struct {
	Name    string
	Dollars float64
}

// Item is one line of a bill with its arithmetic: Dollars is Count x Price / Per.
type Item struct {
	Service string  `json:"service"`
	What    string  `json:"what"`
	Count   float64 `json:"count"`
	Price   float64 `json:"price"`
	Per     float64 `json:"per"` // how many the price is for: 1 or a million
	Dollars float64 `json:"dollars"`
}

// NewItem multiplies.
func NewItem(service, what string, count, price, per float64) Item {
	return Item{service, what, count, price, per, count * price / per}
}

const million = 1e6

// Items returns the cost of the usage, line by line, in the order of the services of [List.Bill].
func (l List) Items(u Usage) []Item {
	return []Item{
		NewItem("DynamoDB writes", "write units", u.WriteUnits, l.WriteUnits, million),
		NewItem("DynamoDB reads", "read units", u.ReadUnits, l.ReadUnits, million),
		NewItem("SQS", "requests", u.QueueRequests, l.QueueRequests, million),
		NewItem("Lambda", "invocations", u.Invocations, l.Invocations, million),
		NewItem("Lambda", "GB-seconds", u.LambdaGBSeconds, million*l.LambdaGBSecond, million),
		NewItem("Step Functions", "Express executions", u.ExpressStarts, l.ExpressStarts, million),
		NewItem("Step Functions", "Express GB-seconds", u.ExpressGBSecs, million*l.ExpressGBSecond, million),
		NewItem("Step Functions", "Standard transitions", u.Transitions, l.Transitions, million),
		NewItem("S3", "PUT and LIST", u.ObjectWrites, l.ObjectWrites, million),
		NewItem("S3", "GET", u.ObjectReads, l.ObjectReads, million),
	}
}

// Bill lists what the usage costs, by service.
func (l List) Bill(u Usage) (bill []Line) {
	for _, i := range l.Items(u) {
		if n := len(bill); n == 0 || bill[n-1].Name != i.Service {
			bill = append(bill, Line{Name: i.Service})
		}
		bill[len(bill)-1].Dollars += i.Dollars
	}
	return bill
}

// Times is the usage that often; a negative number takes it away where it is added.
func (u Usage) Times(n float64) Usage {
	return Usage{
		u.WriteUnits * n, u.ReadUnits * n, u.QueueRequests * n, u.Invocations * n, u.LambdaGBSeconds * n,
		u.ExpressStarts * n, u.ExpressGBSecs * n, u.Transitions * n, u.ObjectWrites * n, u.ObjectReads * n,
	}
}

// Plus is the sum of both.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		u.WriteUnits + v.WriteUnits, u.ReadUnits + v.ReadUnits, u.QueueRequests + v.QueueRequests,
		u.Invocations + v.Invocations, u.LambdaGBSeconds + v.LambdaGBSeconds, u.ExpressStarts + v.ExpressStarts,
		u.ExpressGBSecs + v.ExpressGBSecs, u.Transitions + v.Transitions, u.ObjectWrites + v.ObjectWrites,
		u.ObjectReads + v.ObjectReads,
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

// WriteUnits is the write units of one write of an item, by the larger of its sizes before and
// after. An absent item has 0 bytes.
func WriteUnits(bytes int) float64 { return units(bytes, writeUnitBytes) }

// ReadUnits is the read units of reading one item, even an absent item.
func ReadUnits(bytes int, consistent bool) float64 {
	if consistent {
		return units(bytes, readUnitBytes)
	}
	return units(bytes, readUnitBytes) / 2
}

// QueueRequests is how many requests AWS bills for one call with that payload.
func QueueRequests(bytes int) float64 { return units(bytes, requestBytes) }

// ExpressGBSeconds is the billed time of one Express execution that took d. Its start is billed
// separately.
func ExpressGBSeconds(d time.Duration) float64 {
	steps := max((d+expressStep-1)/expressStep, 1)
	return (steps * expressStep).Seconds() * expressGB
}

// LambdaGBSeconds is the billed time of one invocation that took d, in whole milliseconds.
func LambdaGBSeconds(d time.Duration, megabytes int) float64 {
	ms := max((d+time.Millisecond-1)/time.Millisecond, 1)
	return (ms * time.Millisecond).Seconds() * float64(megabytes) / 1024
}
