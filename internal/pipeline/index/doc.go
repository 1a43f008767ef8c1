// SPDX-License-Identifier: Apache-2.0

// Package index carries out design section 8: one turn of a flight. A turn reads the rows of the
// flight's documents and claims the newest version of every document that is due. It writes them
// to the sink in bulk, commits them, and deletes the messages that are done.
//
// The method run in turn.go shows the order of the stages. Each stage names what it needs and what
// it returns, and does not know the other stages.
//
// What it promises:
//
//   - It writes nothing without a lease.
//   - It deletes no message that is not done.
//   - It writes no older version after a version that may be in the sink.
//   - It sends at most one request under one claim, unless the sink definitely refused the first.
//
// A turn may be killed at any point, and two turns of one flight may overlap: the rows decide.
// No state survives between calls of Turn. Turn is safe for concurrent use.
package index
