// Package faultmap holds no code, only tests: they keep docs/faults.md honest.
//
// That document lists the faults and races that lull is built for, a numbered
// line each, with the outcome that each must have and the tests that show it.
// The check (build tag faults, run by make faults) fails when a line is
// missing or names no test, and when a named test does not exist, is empty or
// begins by skipping itself. What a test proves, only its reader can judge.
//
// A test is named in backquotes, TestName, or TestName/part of a suite: the
// part is then the name of a subtest, written as a string in Go source or as
// the name of a scenario file in a testdata folder.
package faultmap
