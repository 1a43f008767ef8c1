// Package ledger counts the outcome of every event that a `lull dev` received, and its cost: row
// writes, row reads and sink calls.
//
// It promises that each event is counted once, with one outcome, even if its message is delivered
// several times. [Report.Check] adds the outcomes up.
package ledger
