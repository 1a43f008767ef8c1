// Package faultmap holds no code, only tests: they keep docs/faults.md honest.
//
// That document lists the faults and races that lull is built for. Each numbered line says the
// outcome that the fault must have, and names the tests that show it.
//
// The check (build tag faults, run by make faults) fails when a line is missing or names no test.
// It also fails when a test that any page names does not exist, is empty or begins by skipping
// itself. What a test proves, only its reader can judge.
//
// A page names a test in backquotes: TestName, or TestName/part of a suite. The part is the name of
// a subtest, written as a string in Go source, or of a scenario file in a testdata folder.
package faultmap
