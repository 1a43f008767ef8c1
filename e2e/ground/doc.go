// Package ground is the ground of the end-to-end tests: AWS as an emulator shows it, OpenSearch,
// and stacks of lull deployed there.
//
// What it promises:
//
//   - It talks to nothing but the endpoint in AWS_ENDPOINT_URL, and refuses to begin without one:
//     no mistake reaches a real account.
//   - Whatever a test waits for has a deadline, and a test that runs out of time says what it saw
//     last.
//   - What a test reads is read where an operator would read it: queues, rows, logs and the sink,
//     never inside a function.
package ground
