// SPDX-License-Identifier: Apache-2.0

// Acceptance proves a stack on an account of AWS, and removes it again. `make acceptance` runs it.
// e2e/run.sh runs the same program on an emulator.
//
// It promises:
//
//   - It changes nothing before its operator has seen the account, the price and the time, and has
//     agreed. It refuses an account whose alias names production, and an account other than the one
//     that its operator named.
//   - Every resource has a name that begins with the stack's name, except what `cdk bootstrap`
//     makes. It refuses a stack's name that is in use by a stack that it did not deploy.
//   - Its steps are stored in a file. A run that was interrupted continues with the step that did
//     not finish.
//   - Ctrl-C ends the run and removes everything. If a step fails, everything stays, so that its
//     operator can look; the last line says how to continue, and how to remove it.
//   - At the end it looks for what is left, and names it.
package main
