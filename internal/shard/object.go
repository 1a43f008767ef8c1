package shard

// ObjectRow is the key of the row that stores how far an S3 object with many documents was read for
// a sink. The row belongs to the place, and not to one content of the object.
func ObjectRow(sink, bucket, key string) DocID {
	return DocID("!object#" + sink + "#" + bucket + "/" + key)
}

// Advance stores how far the object was read. It is refused if the row changed after was, the time
// of its last change (0 for none). now must be later than was.
func Advance(object DocID, was, now Micros, progress string, expires int64) Write {
	return Write{Transition: ADVANCE, Doc: object, Cond: []Clause{
		known(),
		still(AttrRanAt, timeValue(was)),
	}, Update: []Action{
		set(AttrRanAt, timeValue(now)), set(AttrCursor, textValue(progress)),
		set(AttrExpiresAt, numberValue(expires)),
	}}
}
