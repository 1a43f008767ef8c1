package commitfeed

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Pattern is the filter in front of FromStream, as an EventBridge pattern. It passes every commit:
// a row has a committed key then, and no owner. Claims, which have one, and rows without a commit
// cost nothing. A pattern cannot compare the row before with the row after, so most admissions pass
// too, and FromStream drops them: about one for each commit.
const Pattern = `{"eventName":["INSERT","MODIFY"],"dynamodb":{"NewImage":{"committed":{"B":[{"exists":true}]},` +
	`"owner":{"S":[{"exists":false}]}}}}`

// record is a change in a table's stream.
type record struct {
	Name string `json:"eventName"`
	Data struct {
		At  float64                `json:"ApproximateCreationDateTime"` // seconds
		Key map[string]streamValue `json:"Keys"`
		New map[string]streamValue `json:"NewImage"`
		Old map[string]streamValue `json:"OldImage"`
	} `json:"dynamodb"`
}

// streamValue is an attribute: order keys are binary, names strings, times and counts numbers.
type streamValue struct {
	B []byte  `json:"B"`
	S *string `json:"S"`
	N *string `json:"N"`
}

// FromStream tells what the records of a table's stream say: as many events as there were commits,
// in their order, never nil. An error names the record that is not one of the table's.
func FromStream(batch []byte) ([]Event, error) {
	var records []record
	if err := json.Unmarshal(batch, &records); err != nil {
		return nil, fmt.Errorf("commit feed: this is not a list of records of a DynamoDB stream: %w", err)
	}
	told := []Event{}
	for i, r := range records {
		doc := r.Data.Key["doc"].S
		if doc == nil {
			return nil, fmt.Errorf("commit feed: record %d has no key `doc`: the stream is not of lull's table", i)
		}
		before, err := row(*doc, r.Data.Old)
		if err != nil {
			return nil, fmt.Errorf("commit feed: record %d, the row before: %w", i, err)
		}
		after, err := row(*doc, r.Data.New)
		if err != nil {
			return nil, fmt.Errorf("commit feed: record %d, the row after: %w", i, err)
		}
		if e, ok := Of(before, after, time.UnixMilli(int64(r.Data.At*1000))); ok {
			told = append(told, e)
		}
	}
	return told, nil
}

// row is the row of an image. What is not a row's attribute is passed over: a newer schema may have
// others.
func row(doc string, image map[string]streamValue) (shard.Row, error) {
	r := shard.Row{Doc: shard.DocID(doc)}
	for _, a := range shard.Attrs() {
		v, ok := image[string(a)]
		if !ok {
			continue
		}
		value := shard.Value{Kind: shard.KindBinary, Text: string(v.B)}
		switch {
		case v.S != nil:
			value = shard.Value{Kind: shard.KindString, Text: *v.S}
		case v.N != nil:
			n, err := strconv.ParseInt(*v.N, 10, 64)
			if err != nil {
				return r, fmt.Errorf("attribute %s is not an integer of 64 bits", a)
			}
			value = shard.Value{Kind: shard.KindNumber, Num: n}
		}
		if !r.Set(a, value) {
			return r, fmt.Errorf("attribute %s has another type", a)
		}
	}
	return r, nil
}
