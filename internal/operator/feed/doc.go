// Package feed brings messages to a stack: it reads files of messages, sends them at their times,
// and knows which queue a message belongs to. `lull dev`, `publish`, `resync` and `simulate` share
// it.
//
// It promises that a message arrives byte for byte, and that an error names the file and the line.
// Messages are sent in the order of their times, whatever the order of the file.
package feed
