// SPDX-License-Identifier: Apache-2.0

package commitfeed

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
)

// Pattern is the EventBridge pattern that filters the stream before FromStream. It passes every
// commit: after a commit, a row has a committed key and no owner. It drops claims, because a
// claimed row has an owner, and rows without a commit. A pattern cannot compare the row before with
// the row after. So Pattern also passes most admissions, about one for each commit, and FromStream
// drops these.
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

// streamValue is the value of an attribute. Order keys are binary, names are strings, times and
// counts are numbers.
type streamValue struct {
	B  []byte   `json:"B"`
	BS [][]byte `json:"BS"`
	S  *string  `json:"S"`
	N  *string  `json:"N"`
}

// FromStream returns one event for each commit in the records of a table's stream, in the order of
// the records. It skips a record that it cannot read, and returns an error that names the record. A
// retry would only delay the records after it. The events are nil if the batch is not a list of
// records.
func FromStream(batch []byte) ([]Event, error) {
	var records []record
	if err := json.Unmarshal(batch, &records); err != nil || records == nil {
		return nil, fmt.Errorf("commit feed: this is not a list of records of a DynamoDB stream: %w",
			cmp.Or(err, errors.New("the batch is null")))
	}
	events := []Event{}
	var bad []error
	for i, r := range records {
		e, ok, err := r.event()
		if err != nil {
			bad = append(bad, fmt.Errorf("commit feed: record %d: %w", i, err))
		}
		if ok {
			events = append(events, e)
		}
	}
	return events, errors.Join(bad...)
}

// event returns the event of a record, and false if the record is not a commit.
func (r *record) event() (Event, bool, error) {
	doc := r.Data.Key["doc"].S
	if doc == nil {
		return Event{}, false, errors.New("no key `doc`: the stream belongs to another table than lull's")
	}
	if strings.HasPrefix(*doc, "!") {
		return Event{}, false, nil // a dead letter, or another item that is not a document's row
	}
	before, err := row(*doc, r.Data.Old)
	if err != nil {
		return Event{}, false, fmt.Errorf("the row before: %w", err)
	}
	after, err := row(*doc, r.Data.New)
	if err != nil {
		return Event{}, false, fmt.Errorf("the row after: %w", err)
	}
	e, ok := Of(before, after, time.UnixMilli(int64(r.Data.At*1000)))
	return e, ok, nil
}

// row converts an image to a row. It ignores attributes that a row does not have, because a newer
// schema may have more.
func row(doc string, image map[string]streamValue) (shard.Row, error) {
	r := shard.Row{Doc: shard.DocID(doc)}
	for _, a := range shard.Attrs() {
		v, ok := image[string(a)]
		if !ok {
			continue
		}
		value := shard.Value{Kind: shard.KindBinary, Text: string(v.B)}
		switch {
		case v.BS != nil:
			value = shard.KeySetValue(v.BS)
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
