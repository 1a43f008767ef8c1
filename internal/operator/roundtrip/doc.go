// SPDX-License-Identifier: Apache-2.0

// Package roundtrip sends a synthetic document through a stack: it publishes the document, waits
// until it is committed, reads it back from the sink, deletes it, and waits until the delete is
// committed. `lull doctor` does this once, and the canary does it by a schedule.
//
// What it promises:
//
//   - A round trip is a job (package job). It continues where it stopped, on any machine, so it may
//     take longer than an invocation of a function.
//   - A round trip may be killed at any call. The next one sends the same event again, or a newer
//     one, and deletes the document. So the document stays in the sink only as long as no round
//     trip runs or the stack commits nothing.
//   - An event is saved before it is published. A message that was sent twice is written once.
//   - A round trip that fails does not hide it: it counts as failed until a later one passes.
package roundtrip
