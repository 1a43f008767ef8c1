// SPDX-License-Identifier: Apache-2.0

// Package ground is the environment of the end-to-end tests: an emulator of AWS, OpenSearch, and
// stacks of lull that are deployed to the emulator.
//
// The package promises:
//
//   - It sends requests of AWS only to the endpoint in AWS_ENDPOINT_URL, and refuses to start
//     without this variable. So a mistake cannot reach a real account. Only the program acceptance,
//     which its operator gives the id of an account, runs the tests on an account of AWS.
//   - A test never waits without a deadline. If the deadline passes, the test prints what it saw
//     last.
//   - A test reads only what an operator can read: queues, rows, logs and the sink. It never looks
//     inside a function.
package ground
