// Package stepfunctions is the Step Functions half of the seam flight.Launcher, and renders the
// state machine that times the flights.
//
// What it promises:
//
//   - Start begins one execution with the state as its input, named after the flight and its leg. A
//     taken name means that the execution runs, or ran, so a repeated start of a Standard machine
//     is one execution. Express names are not idempotent; two executions of one flight are
//     harmless.
//   - Render fills in the definition, which is one file: the index function, and the times that
//     depend on the settings. A test checks what no linter does: actions, argument names and
//     ranges. It also checks that a failure with an unknown outcome is never retried before the
//     lease of a lost invocation has ended.
package stepfunctions
