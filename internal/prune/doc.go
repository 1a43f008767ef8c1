// Package prune is the lifecycle (design section 9): a run every few minutes, for one sink, that
// collects what nobody needs any more and sends what has become due.
//
// A run has four segments: scheduled events, dead letters, orphaned flights, rows. Each first only
// reads, with a cursor and within budgets of reads and time, and then writes on condition. What it
// promises:
//
//   - At most one run at a time and per interval, however many rules fire: a conditional row says
//     whose turn it is. Two runs that overlap all the same, or one that dies half way, come to the
//     same end.
//   - A segment that fails is reported, and the others go on.
//   - Never a row with a lease or with work that waits; a row that changed since it was read is
//     left alone and counted. One full pass over the rows a day, at any size of the table.
//   - A scheduled event is enqueued to the second, never early, and deleted only after its sending
//     succeeded.
//   - A dead letter goes only when the row shows its version or a newer one committed. Dead letters
//     with a transient reason are sent again by themselves, a bounded number of times: this is the
//     only place that does.
//   - Redelivery recovers every crash. Stuck counts what it did not: that is for an operator, see
//     [Pruner.Rescue].
package prune
