package event

import "time"

// Object is an object in S3 that holds many documents. Every line of it becomes a message.
type Object struct {
	Bucket, Key string
	// Version is S3's sequencer, which orders the objects of one key.
	Version string
	ETag    string // empty if the notification has none
	Bytes   int64
	Written time.Time // from the notification; zero if it has none
	// Source decodes the lines.
	Source string
	// PerSecond is how many lines a second become messages, on average. MaxText bounds the bytes of
	// text that are read, after decompression.
	PerSecond int
	MaxText   int64
}
