// Package shardtest is the conformance suite of [shard.Store]: what a table must do for the
// protocol to hold, whatever it is made of. A store that passes may be trusted with documents.
//
// [Cases] walks through every write of the protocol in all its forms: for each comparison in its
// condition there is a row that the write must accept because of it, and a row that it must refuse.
// For each part of its update there is a row in which that part shows. The suite's own test takes
// every comparison and every part away, or bends it by one, and demands that some case notices.
// [Duties] are the rest: atomicity under 40 claimers, images on success and refusal, absent rows,
// reads.
//
// The suite looks at a store through its seam only, takes its times from constants and uses
// documents of its own. So it may run beside others against a shared table.
package shardtest
