// Package stepfunctions is the Step Functions half of the seam flight.Launcher, and renders the
// state machine that times the flights.
//
// What it promises:
//
//   - Start begins one execution with the state as its input, named after the flight and its leg. A
//     name that is taken means that the execution runs, or ran: with a Standard machine a repeated
//     start is one execution. Express names are not idempotent; two executions of one flight do no
//     harm.
//   - Render fills in the definition, which is one file: the index function, the times that depend
//     on the settings. The test beside it checks what no linter does: actions, argument names,
//     ranges, and that an ambiguous failure is never retried before the lease of a lost invocation
//     can have ended.
package stepfunctions
