// Package deadletter is about dead letters: messages that will not be tried again by themselves,
// stored with the reason.
//
// A dead letter travels from receive or index to the dead-letter queue as an SQS message
// ([Letter.Message], [Read]): body and attributes byte for byte, what is known of it in one
// attribute more. dlq then parks it in a [Store], body and facts apart.
//
// What the package promises: what [Read] gives back is what the dead letter was made of, or an
// error; a message that is too large for its own facts is never cut, it is packed or refused. Facts
// hold no document content.
package deadletter
