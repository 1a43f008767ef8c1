// SPDX-License-Identifier: Apache-2.0

// Package stepfunctions implements flight.Launcher with Step Functions. The package also renders
// the definition of the state machine that runs flights.
//
// What it promises:
//
//   - Start begins an execution with the state as its input. The name of the execution consists of
//     the flight and the leg. On a Standard machine, a second start with the same name fails
//     because the execution already exists, and Start counts that as success. On an Express
//     machine, a repeated start begins a second execution, which is harmless.
//   - Render adds the index function and the times from the settings to the definition, which is
//     one file. A test checks the actions, the argument names and the ranges in the definition,
//     which linters do not check. The test also checks that a failure with an unknown outcome is
//     never retried before the lease of a lost invocation has ended.
package stepfunctions
