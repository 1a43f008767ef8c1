// SPDX-License-Identifier: Apache-2.0

// Package deadletter defines dead letters: messages that lull does not try again by itself, stored
// with the reason.
//
// receive or index sends a dead letter to the dead-letter queue as an SQS message
// ([Letter.Message], [Read]). The message has the original body and attributes, and one more
// attribute holds the facts. Then dlq parks the dead letter in a [Store], with the message and the
// facts apart.
//
// The package promises that [Read] returns the dead letter as it was made, or an error. If a
// message and its facts are too large for SQS, the body is packed or the message is refused. A body
// is never cut. Facts hold no document content.
package deadletter
