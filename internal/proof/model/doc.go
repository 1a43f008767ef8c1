// Package model checks lull's protocol by exploring every state that it can reach, breadth first,
// so that the first violation found has the shortest story.
//
// The protocol is that of docs/design.md, sections 5 to 10, for one document: receive, index, the
// sink, dlq, redrive and prune as processes whose every step may interleave with every other one.
// [Rules] holds one switch for each change to it. [Bounds] says how many messages, executions and
// faults there are. [Model] makes a [Machine] of both, and [Explore] walks it. [Changes] are the
// rows of the table in docs/model.md, each with the bounds in which it falls; testdata holds their
// stories. [Holdings] are the bounds in which the design holds. Nothing is violated there, and from
// every state a settled one can be reached without another fault or anybody's help. [Findings] are
// what the design does not promise, with what would help.
//
// The conditions here (conditions.go) are stated a second time on purpose. They are derived from
// the design, not from internal/shard: a mistake in the code's conditions must not be a mistake in
// the model's, too. A test evaluates both on any row.
//
// # What is modelled
//
//   - One document with up to three versions in any order of arrival, or missing; some of them
//     deletes, poison, or refused item by item; up to six messages, with one event or several, of
//     this document or of another one.
//   - SQS: duplicates, redelivery while held, visibility that lapses, receive counts that run out,
//     stale handles.
//   - Receive: batches, ADMIT of the newest that is not done, verdicts by the row; its crash
//     between any two writes, lost and double StartExecution. Two receivers with ADMIT and answer
//     as steps of their own.
//   - Up to three executions; the same flight may run in several; each turn takes any version that
//     it holds, because due times differ; the cap may be past at any time; a superseded version may
//     leave its flight any number of times.
//   - CLAIM, CLAIM again, COMMIT, RELEASE, REJECT, PARK in both forms: applied, refused, lost with
//     their sender, applied without an answer, and arriving after their sender gave up, once or
//     twice.
//   - Leases that end at any time; for a sink without versions, once every request made under them
//     is done: that is what the settings promise.
//   - Requests that are lost, time out, arrive late; throttled, refused for good, item errors.
//   - Sinks with versions, without, and such that forget the versions of deletes.
//   - Clocks that differ by any amount, as ranks: the claim's time is the external version.
//   - The dead-letter queue, parked dead letters, redrives by hand and by themselves, dead
//     deadlines.
//   - Prune, with rows that outlive every message or not; the table down and written open.
//   - The table restored to an earlier image, and `lull index check` that raises its row, with
//     everything stopped or beside live traffic.
//
// # What is not
//
// Debounce: quiet and max wait only decide when a turn happens, and here it may happen at any time.
// Fairness: "settles" means that it can, not that it must. Health rows, minInterval and group sizes
// need little of the rest and have machines of their own: [Breaker], [Pace], [Groups]. Schema
// versions and version classes are compared with the code clause by clause, and have no behaviour
// here.
//
// States that differ only in the names of tokens or in the order of executions are one. Dead-letter
// retention and row retention are not time but an order: a row that is collected makes every
// version it has heard of too old to judge.
package model
