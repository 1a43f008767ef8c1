// SPDX-License-Identifier: Apache-2.0

// Package receive carries out design section 6. It judges a batch of messages by their rows. It
// acknowledges the messages that are done, and holds the rest in one flight.
//
// What it promises: a message is acknowledged (left out of the answer) only when every event in the
// message is done. An event is done in one of these cases:
//
//   - the row has committed >= the order key of the event;
//   - the rule of its source skips the event;
//   - the event is stored elsewhere and the store has confirmed that (dead letter, scheduled item);
//   - the event is about an object of many documents, and the object was read, or a message that
//     continues the reading is stored.
//
// All other messages are in the answer, so SQS keeps them. Either the flight holds these messages,
// or they return after their visibility because something failed. No state survives between calls
// of Handle. Handle is safe for concurrent use.
package receive
