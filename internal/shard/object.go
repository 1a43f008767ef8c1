// SPDX-License-Identifier: Apache-2.0

package shard

// ObjectRow returns the key of the row that stores how far an S3 object with many documents was
// read for a sink. The row belongs to the bucket and key, and not to one content of the object.
func ObjectRow(sink, bucket, key string) DocID {
	return DocID("!object#" + sink + "#" + bucket + "/" + key)
}

// Advance stores how far the object was read. was is the time of the row's last change that the
// caller has read, or 0 if the row is new. Advance is refused if the row has changed since. now
// must be later than was.
func Advance(object DocID, was, now Micros, progress string, expires int64) Write {
	return Write{Transition: ADVANCE, Doc: object, Cond: []Clause{
		known(),
		still(AttrRanAt, timeValue(was)),
	}, Update: []Action{
		set(AttrRanAt, timeValue(now)), set(AttrCursor, textValue(progress)),
		set(AttrExpiresAt, numberValue(expires)),
	}}
}
