// SPDX-License-Identifier: Apache-2.0

// Package dlq consumes the dead-letter queue of one sink (design section 10). It judges every
// message there by its row. Then it drops the message as superseded, gives it back, or parks it
// with a reason.
//
// What it promises:
//
//   - A message leaves the dead-letter queue only when each of its events is done: committed >= its
//     order key, skipped by its source's rule, parked, or sent in a copy. If the settings say
//     `deadLetters: none`, an event that was dropped and counted is done too.
//   - A dead letter is parked byte for byte, once per document and order key, however often it
//     arrives.
//   - The events of a message that have no order key share one dead letter. Dead letters are
//     stored by turns over the messages of a batch, while there is time. The next delivery
//     continues.
//   - Nothing is parked while a flight may be writing it: if a row is leased, the message waits
//     until the lease ends.
//   - A message that SQS moved although its version never ran is given back to its lane, until it
//     is older than the dead deadline. The receive count does not count tries.
//   - dlq believes the facts of a dead letter only if SQS's id of its sender is that of a function
//     which sends them. Any other dead letter is judged by the message inside it.
//   - PARK follows only a message that SQS moved. A dead letter from index is followed by index's
//     REJECT, and one from receive by receive's own PARK.
//
// prune, not dlq, does the bounded automatic redrives. A message can wait in a queue for at most
// fifteen minutes, and prune reads the parked dead letters anyway.
package dlq
