// Package ledger counts what became of every event that a `lull dev` took in, and what that cost:
// row writes, row reads and sink calls.
//
// It promises that each event is counted once, under one ending, however often its message is
// delivered: [Report.Check] adds the endings up.
package ledger
