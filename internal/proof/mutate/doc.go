// Package mutate asks what the tests of the core would notice: it makes small edits in its code,
// one at a time, and runs the tests with each.
//
// The edits are drawn from all that there are, by a seed. Each is judged by its own package's
// tests, and, where those pass, by the tests of the conditions and by worlds of the simulator. The
// files stay as they are: the go command gets an edited copy (-overlay). An edit that does not
// build is drawn anew. docs/mutants.md shows the last run.
package mutate
