// Package bridge moves messages from a broker's queue into a queue of lull. It confirms each to the
// broker only once lull's queue has accepted it.
//
// What it promises:
//
//   - A message is never confirmed early: the broker keeps it until the queue's answer says that it
//     has it, entry by entry, or until the broker itself has parked it. Whichever side is killed,
//     nothing is lost. What was accepted and not yet confirmed is delivered and sent again: lull's
//     row judges duplicates.
//   - Memory is bounded by the prefetch of the session: no more messages are unconfirmed.
//   - One message never blocks the others. One that is too large goes to the payload store and is
//     sent as a reference. One that the queue does not take for what it holds is parked. Without a
//     place to park it stays unconfirmed at the broker, and the log says so.
//   - Whatever is wrong with a whole call or with the connection passes: it is tried again, with a
//     back-off that has no end.
//   - No body is ever logged, and what a sender chose is escaped.
package bridge
