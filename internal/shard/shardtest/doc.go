// SPDX-License-Identifier: Apache-2.0

// Package shardtest is the conformance suite of [shard.Store]. A table that passes it keeps the
// promises that the protocol needs, whatever database it uses.
//
// [Cases] tests every write of the protocol in all its forms. For each comparison in a condition,
// it has a row that the write must accept because of it, and one that it must refuse. For each part
// of an update, it has a row on which that part makes a difference. The suite's own test removes
// each comparison and each part, or changes it slightly, and requires that some case fails.
// [Duties] tests the rest: 40 claimers at once, the images of success and refusal, absent rows, and
// reads.
//
// The suite uses only the interface of a store, constant times, and documents of its own. So it may
// run at the same time as others against a shared table.
package shardtest
