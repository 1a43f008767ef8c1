// SPDX-License-Identifier: Apache-2.0

package event

import "time"

// Object is an object in S3 that contains many documents. Every line of the object becomes a
// message.
type Object struct {
	Bucket, Key string
	// Version is S3's sequencer, which orders the objects of one key.
	Version string
	ETag    string // empty if the notification has none
	Bytes   int64
	Written time.Time // the time in the notification; zero if the notification has no time
	// Source is the name of the source that decodes the lines.
	Source string
	// PerSecond is how many lines a second become messages, on average. MaxText bounds the bytes of
	// text that are read, after decompression.
	PerSecond int
	MaxText   int64
}
