// Package deadletter defines dead letters: messages that lull does not try again by itself, stored
// with the reason.
//
// receive or index sends a dead letter to the dead-letter queue as an SQS message
// ([Letter.Message], [Read]). It has the original body and attributes, and the facts in one more
// attribute. Then dlq parks it in a [Store], with body and facts apart.
//
// The package promises that [Read] returns the dead letter as it was made, or an error. If a
// message and its facts are too large for SQS, the message is packed or refused, and never cut.
// Facts hold no document content.
package deadletter
