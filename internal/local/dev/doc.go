// Package dev runs lull in one process: the same receive, index, prune and dead-letter code as on
// AWS. The queues, the table, the flight store and the state machine are in memory, and the sink is
// a Bleve index on disk. It is what `lull dev` and the tests of whole flows are made of.
//
// It promises what the deployed stack promises, within one life of the process: rows and dead
// dead letters are written to the data folder when it stops, and rebuilt from the sink where it was
// killed.
package dev
