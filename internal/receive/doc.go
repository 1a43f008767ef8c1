// Package receive carries out design section 6: it judges a batch of messages by their rows, lets
// go what is done, and holds the rest in one flight.
//
// What it promises: a message is acknowledged (left out of the answer) only when every event in it
// is done: committed >= its order key, skipped by its source's rule, or stored elsewhere and that
// confirmed (dead letter, scheduled item). Everything else is in the answer, so SQS keeps it: held
// by the flight, or simply back after its visibility when anything failed. A message about an
// object of many documents is done once a message that reads on is stored, or the object was read.
// No state survives between calls of Handle, and Handle is safe for concurrent use.
package receive
