// Package dlq consumes the dead-letter queue of one sink (design section 10): it judges every
// message there by its row and then drops it as superseded, gives it back, or parks it with a
// reason.
//
// What it promises:
//
//   - A message leaves the dead-letter queue only when each of its events is done: committed >= its
//     order key, skipped by its source's rule, parked, or on its way in a copy that was sent. Where
//     the settings say `deadLetters: none`, dropped and counted counts as done: an operator chose
//     that.
//   - A dead letter is parked byte for byte, once per document and order key, however often it
//     arrives.
//   - Events of a message that have no order key share one dead letter. Dead letters are stored
//     round by round over the messages of a batch, while there is time; the next delivery goes on.
//   - Nothing is parked while somebody may be writing it: a leased row sends the message back until
//     the lease ends.
//   - A message that SQS moved although its version never ran goes back to its lane, until it is
//     older than the dead deadline: the receive count is not an attempt count.
//   - The facts of a dead letter are believed from the functions that send them, by SQS's id of the
//     sender. Whatever else says that it is one is judged by the message inside it.
//   - Only what SQS moved is followed by PARK. A dead letter that index sent is followed by index's
//     REJECT, one of receive's by its own PARK.
//
// Bounded automatic redrives are not here: a message may wait fifteen minutes at most in a queue,
// so prune, which looks at the parked dead letters anyway, sends them.
package dlq
