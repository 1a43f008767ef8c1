// SPDX-License-Identifier: Apache-2.0

package dynamodbstream_test

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/source/sourcetest"
)

// The time to read an image grows with the square of its levels. An image of one megabyte in 120
// levels took half a second of processor time, for each document of a flight and in each turn.
func TestAnImageNestsAsDeepAsDynamoDBLetsIt(t *testing.T) {
	t.Parallel()
	set := sourcetest.New(t, options.Settings)
	for _, tt := range []struct {
		levels int
		valid  bool
	}{{1, true}, {32, true}, {33, false}, {120, false}} {
		image := strings.Repeat(`{"M":{"a":`, tt.levels) + `{"S":"x"}` + strings.Repeat(`}}`, tt.levels)
		m := event.Message{Body: `{"Records":[{"eventSource":"aws:dynamodb","eventName":"INSERT","dynamodb":{` +
			`"Keys":{"id":{"S":"x"}},"SequenceNumber":"123","NewImage":{"a":` + image + `}}}]}`}
		r := set.Decode(m)[0]
		if r.Invalid != nil {
			t.Fatal(r.Invalid)
		}
		if _, err := set.Document(m, r.Event); (err == nil) != tt.valid {
			t.Errorf("%d levels: %v, want the image accepted: %t", tt.levels, err, tt.valid)
		}
	}
}
