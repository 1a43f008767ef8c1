package shard

// ObjectRow is the key of the row that says how far an object of many documents was read for a
// sink: of whichever object is at that place.
func ObjectRow(sink, bucket, key string) DocID {
	return DocID("!object#" + sink + "#" + bucket + "/" + key)
}

// Advance keeps how far the object of a place was read, unless somebody has changed that since was:
// the time of the last change, 0 for none. now must be later than was.
func Advance(object DocID, was, now Micros, progress string, expires int64) Write {
	return Write{Transition: ADVANCE, Doc: object, Cond: []Clause{
		known(),
		still(AttrRanAt, timeValue(was)),
	}, Update: []Action{
		set(AttrRanAt, timeValue(now)), set(AttrCursor, textValue(progress)),
		set(AttrExpiresAt, numberValue(expires)),
	}}
}
