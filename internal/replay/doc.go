// Package replay sends what the archive has again: the messages of a time, through the bulk lane,
// as events of a resync run (ADR 0044).
//
// What it promises:
//
//   - No document goes back. An event is sent only where its row knows nothing newer: neither a
//     later version, nor the same version with another content that came after it. From there on
//     the rows decide, as for every message.
//   - A step may be repeated, and a replay may go on where it stopped. The run stays the same, so
//     that each event is accepted once.
//   - What a copy may not do it does not: a message keeps the time when it was first sent, so
//     what is too old to judge stays so.
//   - An object that cannot be read is named, and the rest goes on.
package replay
