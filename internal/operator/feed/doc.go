// SPDX-License-Identifier: Apache-2.0

// Package feed brings messages to a stack. It reads files of messages, sends the messages at their
// times, and decides which queue each message belongs to. `lull dev`, `publish`, `resync` and
// `simulate` use it.
//
// It promises that a message arrives byte for byte, and that an error names the file and the line.
// Messages are sent in the order of their times, whatever the order of the file.
package feed
