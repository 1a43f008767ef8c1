// SPDX-License-Identifier: Apache-2.0

// Package dev runs lull in one process, with the same code of receive, index, prune and dlq as on
// AWS. The queues, the table, the flight store and the state machine are in memory, and the sink is
// a Bleve index on disk. `lull dev` and the tests of whole flows use it.
//
// The stack in one process keeps the promises of the deployed stack. With a data folder, a new
// process continues where the last process ended or was killed. The new process has the same
// messages, rows, flights, dead letters and scheduled events. Two things are lost: the counters of
// the report, and the decisions that `lull explain` shows.
package dev
