// SPDX-License-Identifier: Apache-2.0

package price

import "time"

// Usage is a stack's usage in billed units. The zero Usage means nothing was used.
type Usage struct {
	WriteUnits      float64
	ReadUnits       float64
	QueueRequests   float64
	Invocations     float64
	LambdaGBSeconds float64
	ExpressStarts   float64
	ExpressGBSecs   float64
	Transitions     float64 // billed transitions, which only Standard executions have
	ObjectWrites    float64
	ObjectReads     float64
}

// Line is the total cost of one service.
type Line struct {
	Name    string
	Dollars float64
}

// Item is one line of a bill, with its calculation: Dollars is Count x Price / Per.
type Item struct {
	Service string  `json:"service"`
	What    string  `json:"what"`
	Count   float64 `json:"count"`
	Price   float64 `json:"price"`
	Per     float64 `json:"per"` // for how many units the price is: 1 or a million
	Dollars float64 `json:"dollars"`
}

// NewItem returns an Item with its calculated Dollars.
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

// Bill lists the cost of the usage by service.
func (l List) Bill(u Usage) (bill []Line) {
	for _, i := range l.Items(u) {
		if n := len(bill); n == 0 || bill[n-1].Name != i.Service {
			bill = append(bill, Line{Name: i.Service})
		}
		bill[len(bill)-1].Dollars += i.Dollars
	}
	return bill
}

// Times returns n times the usage. With a negative n, adding the result subtracts usage.
func (u Usage) Times(n float64) Usage {
	return Usage{
		u.WriteUnits * n, u.ReadUnits * n, u.QueueRequests * n, u.Invocations * n, u.LambdaGBSeconds * n,
		u.ExpressStarts * n, u.ExpressGBSecs * n, u.Transitions * n, u.ObjectWrites * n, u.ObjectReads * n,
	}
}

// Plus returns the sum of both usages.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		u.WriteUnits + v.WriteUnits, u.ReadUnits + v.ReadUnits, u.QueueRequests + v.QueueRequests,
		u.Invocations + v.Invocations, u.LambdaGBSeconds + v.LambdaGBSeconds, u.ExpressStarts + v.ExpressStarts,
		u.ExpressGBSecs + v.ExpressGBSecs, u.Transitions + v.Transitions, u.ObjectWrites + v.ObjectWrites,
		u.ObjectReads + v.ObjectReads,
	}
}

// Dollars returns the total of the bill.
func (l List) Dollars(u Usage) float64 {
	sum := 0.0
	for _, line := range l.Bill(u) {
		sum += line.Dollars
	}
	return sum
}

// Sizes of the units that the services bill.
const (
	writeUnitBytes = 1 << 10
	readUnitBytes  = 4 << 10
	requestBytes   = 64 << 10
	expressStep    = 100 * time.Millisecond
	expressGB      = 64.0 / 1024 // the smallest memory that is billed; a flight's state never needs more
)

func units(bytes, unit int) float64 { return float64(max((bytes+unit-1)/unit, 1)) }

// WriteUnits returns the write units of one write of an item. bytes is the larger of the item's
// sizes before and after the write. An absent item has 0 bytes.
func WriteUnits(bytes int) float64 { return units(bytes, writeUnitBytes) }

// ReadUnits returns the read units for reading one item. An absent item also takes units.
func ReadUnits(bytes int, consistent bool) float64 {
	if consistent {
		return units(bytes, readUnitBytes)
	}
	return units(bytes, readUnitBytes) / 2
}

// QueueRequests returns how many requests AWS bills for one call with a payload of this size.
func QueueRequests(bytes int) float64 { return units(bytes, requestBytes) }

// ExpressGBSeconds returns the billed time of one Express execution that took d. AWS bills the
// start separately.
func ExpressGBSeconds(d time.Duration) float64 {
	steps := max((d+expressStep-1)/expressStep, 1)
	return (steps * expressStep).Seconds() * expressGB
}

// LambdaGBSeconds returns the billed time of one invocation that took d, in whole milliseconds.
func LambdaGBSeconds(d time.Duration, megabytes int) float64 {
	ms := max((d+time.Millisecond-1)/time.Millisecond, 1)
	return (ms * time.Millisecond).Seconds() * float64(megabytes) / 1024
}
