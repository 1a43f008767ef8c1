// SPDX-License-Identifier: Apache-2.0

// Package model checks lull's protocol by exploring every state that the protocol can reach. The
// search is breadth first, so that the first violation found has the shortest story.
//
// The model is the protocol of docs/design.md, sections 5 to 10, for one document. receive, index,
// the sink, dlq, redrive and prune are processes, and their steps may interleave in any order.
// [Rules] holds one switch for each change to the protocol. [Bounds] says how many messages,
// executions and faults there are. [Model] combines rules and bounds to a [Machine], and [Explore]
// visits every state of the machine.
//
// [Changes] are the rows of the table in docs/model.md. Each change breaks the protocol within its
// bounds, and testdata holds the story of each. [Holdings] are the bounds in which the design
// holds. Within them no rule is violated, and every state leads to a settled state without another
// fault and without help from an operator. [Findings] are properties that the design does not
// promise. Most findings name a change that would add the property.
//
// The conditions in conditions.go are stated a second time on purpose. The conditions are derived
// from the design, not from internal/shard. If they were derived from the code, a mistake in the
// code would also be in the model. A test evaluates both on any row.
//
// # What is modelled
//
//   - One document with up to three versions, which arrive in any order or never. Some versions are
//     deletes, poison, or refused item by item. Up to six messages carry one event or several, of
//     this document or of another one.
//   - SQS: duplicates, redelivery while a flight holds the message, visibility that ends, receive
//     counts that are used up, stale handles.
//   - Receive: batches, ADMIT of the newest version that is not done, decisions by the row. Receive
//     may crash between any two writes, and StartExecution may be lost or doubled. Two receivers
//     may run, with ADMIT and the answer as separate steps.
//   - Up to three executions. Several executions may run the same flight. Each turn takes any
//     version that the flight holds, because due times differ. The cap may be past at any time. A
//     superseded version may leave its flight any number of times.
//   - CLAIM, CLAIM again, COMMIT, RELEASE, REJECT and PARK in both forms. Each may be applied,
//     refused, lost with its sender, or applied without an answer. Each may also arrive after its
//     sender stopped waiting, once or twice.
//   - Leases that end at any time. For a sink without versions, a lease ends only when all requests
//     made under the lease are done. The settings promise that.
//   - Requests that are lost, time out or arrive late, and requests that the sink throttles,
//     refuses for good, or answers with an item error.
//   - Sinks with versions, sinks without versions, and sinks that forget the versions of deletes.
//   - Clocks that differ by any amount, as ranks. The time of a claim is the external version.
//   - The dead-letter queue, parked dead letters, redrives by operators and by lull, dead
//     deadlines.
//   - Prune, with rows that may be deleted before or after the last message. An outage of the table
//     with `tableOutage: open`.
//   - A table restored to an earlier image, and `lull index check` that raises the row. The
//     functions are stopped in the meantime, or they run.
//
// # What is not
//
// Debounce is left out: quiet and max wait only decide when a turn happens, and in the model a turn
// may happen at any time. Fairness is left out: "settles" means that a settled state can be
// reached, not that it must be. Health rows, minInterval, group sizes, rebuilds and jobs have their
// own machines: [Breaker], [Pace], [Groups], [Rebuild], [Jobs]. Schema versions and version classes
// are compared with the code clause by clause, and have no behaviour in the model.
//
// States that differ only in the names of tokens or in the order of executions count as one state.
// Dead-letter retention and row retention are an order and not a time. When prune deletes a row,
// every version that the row knew becomes too old to judge.
package model
