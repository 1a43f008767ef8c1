// SPDX-License-Identifier: Apache-2.0

// Package faultmap contains only tests, which check docs/faults.md.
//
// docs/faults.md lists the faults and races that lull is built for. Each numbered line gives the
// outcome that the fault must have, and names the tests that show the outcome.
//
// The check (build tag faults, run by make faults) fails if a line is missing or names no test. The
// check also fails if a page names a test that does not exist, that is empty or that begins by
// skipping itself. Only a reader can judge what a test proves.
//
// A page names a test in backquotes: TestName, or TestName/part of a suite. The part is a subtest's
// name, which is a string in Go source, or the name of a scenario file in testdata.
package faultmap
