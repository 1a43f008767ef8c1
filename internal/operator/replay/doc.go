// SPDX-License-Identifier: Apache-2.0

// Package replay sends messages of the archive again, for a range of time. They go through the bulk
// lane, as events of a resync run (ADR 0044).
//
// What it promises:
//
//   - No document gets an older version. An event is sent only if its row has nothing newer:
//     neither a later version, nor the same version with other content that arrived later. After
//     that the rows decide, as for every message.
//   - A step may be repeated, and a replay may continue where it stopped. The resync run stays the
//     same, so each event is accepted once.
//   - A message keeps the time when it was first sent. So a message that is too old to be judged
//     stays too old.
//   - If an object cannot be read, the answer names it, and the replay continues with the others.
package replay
