package event

import "time"

// Object is an object in S3 that holds many documents: every line of it becomes a message of its
// own.
type Object struct {
	Bucket, Key string
	// Version is S3's sequencer, which orders the objects of one key.
	Version string
	ETag    string // empty where the notification has none
	Bytes   int64
	Written time.Time // as the notification says, zero where it does not
	// Source decodes the lines.
	Source string
	// PerSecond is how many lines a second become messages, on average. MaxText is how many bytes of
	// text are read, after decompression.
	PerSecond int
	MaxText   int64
}
