// SPDX-License-Identifier: Apache-2.0

// Package redrive is the service with which operators handle dead letters (design section 10).
// Operators list, show, send again and drop dead letters, and cancel an event that is still
// pending. prune uses the same code for a bounded number of automatic redrives.
//
// It promises:
//
//   - A dead letter is sent only while its version is neither pending nor leased. Otherwise the
//     dead letter is reported as busy.
//   - Sending does not delete the dead letter. The dead letter is deleted once the row shows that
//     its version or a newer version is committed, or when an operator drops it. A drop leaves an
//     audit note.
//   - A message is sent once for all of its selected dead letters that may be sent.
//   - A copy is never newer than its original, and every copy is judged by version. So no document
//     returns to an older version.
//   - A dead letter is too old to judge if it is older than rows are kept and its row has no
//     committed version. Such a dead letter is sent only if the operator forces the redrive.
//   - A dry run changes nothing. A failure concerns one dead letter and is reported with it.
package redrive
