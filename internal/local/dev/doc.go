// Package dev runs lull in one process: the same receive, index, prune and dead-letter code as on
// AWS. The queues, the table, the flight store and the state machine are in memory, and the sink is
// a Bleve index on disk. It is what `lull dev` and the tests of whole flows are made of.
//
// It promises what the deployed stack promises. With a data folder that holds across processes:
// each goes on where the last one ended or was killed, with its messages, rows, flights, dead
// letters and scheduled events. Only the counters of the report and the decisions that explain
// tells begin anew.
package dev
