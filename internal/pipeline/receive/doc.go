// Package receive carries out design section 6. It judges a batch of messages by their rows. It
// acknowledges the messages that are done, and holds the rest in one flight.
//
// What it promises: a message is acknowledged (left out of the answer) only when every event in
// it is done. An event is done in one of these cases:
//
//   - committed >= its order key;
//   - its source's rule skips it;
//   - it is stored elsewhere and the store was confirmed (dead letter, scheduled item);
//   - it is about an object of many documents, and the object was read, or a message that continues
//     the reading is stored.
//
// All other messages are in the answer, so SQS keeps them. Either the flight holds them, or they
// return after their visibility because something failed. No state survives between calls of
// Handle. Handle is safe for concurrent use.
package receive
