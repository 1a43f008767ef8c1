// Package dev runs lull in one process: the same receive, index, prune and dead-letter code as on
// AWS. The queues, the table, the flight store and the state machine are in memory, and the sink is
// a Bleve index on disk. `lull dev` and the tests of whole flows use it.
//
// It promises what the deployed stack promises. With a data folder, a new process continues where
// the last one ended or was killed. It has the same messages, rows, flights, dead letters and
// scheduled events. Only the report's counters, and the decisions that explain shows, start again.
package dev
