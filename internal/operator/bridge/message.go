// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"encoding/json"

	"github.com/lullhq/lull/internal/seam/queue"
)

// Message is a message as the upstream delivered it. Its sender chose all of its content.
type Message struct {
	// Tag identifies the delivery within its session.
	Tag  uint64
	Body []byte
	// Form returns the message for lull's queue. Its argument is Body, or a reference that replaces
	// Body. If Form is nil, the queue gets the argument without attributes.
	Form func(body []byte) queue.Outgoing
	// About names the message in the log: pairs of a name and a value, without content of Body.
	// Texts of a sender are escaped.
	About []any
	// Original is the delivery as the session received it. With it the session can park the message
	// unchanged.
	Original any
}

// outgoing returns the message for lull's queue with this body.
func (m *Message) outgoing(body []byte) queue.Outgoing {
	if m.Form == nil {
		return queue.Outgoing{Body: string(body)}
	}
	return m.Form(body)
}

// reference returns a pointer in the form of the SQS extended client. The pointer replaces a body
// that is in S3.
func reference(bucket, key string) []byte {
	text, err := json.Marshal([]any{
		"software.amazon.payloadoffloading.PayloadS3Pointer",
		map[string]string{"s3BucketName": bucket, "s3Key": key},
	})
	if err != nil {
		panic(err) // texts always have a JSON form
	}
	return text
}
