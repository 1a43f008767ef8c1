// SPDX-License-Identifier: Apache-2.0

// Package bridge moves messages from an upstream into a queue of lull. It confirms each message to
// the upstream only after lull's queue has accepted it. The upstreams are the packages below this
// one: a queue of RabbitMQ and the tables of PostgreSQL. Each is a [Broker].
//
// It promises:
//
//   - A message is never confirmed early. The upstream keeps it until lull's queue has accepted
//     this entry, or until the upstream itself has parked it. So nothing is lost if either side is
//     killed. A message that was accepted but not confirmed is delivered and sent again, and lull's
//     row recognises the duplicate.
//   - Memory is bounded, because the session's prefetch bounds the number of unconfirmed messages.
//   - One message never blocks the others. A message that is too large is stored in the payload
//     store and sent as a reference. A message that the queue refuses for its content is parked.
//     Without a queue to park it in, it stays unconfirmed, and the log says so.
//   - Failures of a whole call or of the connection are retried without end, with a back-off. Only
//     an upstream that can never deliver again ends the bridge: see [Ended].
//   - No body is ever logged, and texts of a sender are escaped.
package bridge
