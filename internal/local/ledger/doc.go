// SPDX-License-Identifier: Apache-2.0

// Package ledger counts the outcome of every event that `lull dev` receives. The package also
// counts the cost: row writes, row reads and sink calls.
//
// The package promises that each event is counted once, with one outcome, even if the message of
// the event is delivered several times. [Report.Check] compares the sum of the outcomes with the
// number of events.
package ledger
