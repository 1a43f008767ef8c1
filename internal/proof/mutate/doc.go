// SPDX-License-Identifier: Apache-2.0

// Package mutate checks what the tests of the core packages notice. The package makes small edits
// in the code, one at a time, and runs the tests with each edit.
//
// A seed picks the edits at random from all possible ones. The tests of the edited package run
// first. If they pass, the tests of the conditions and some simulated runs follow. The files do not
// change: the go command gets an edited copy (-overlay). An edit that does not build is replaced by
// another one. docs/mutants.md shows the last run.
package mutate
