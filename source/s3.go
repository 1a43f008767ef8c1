package source

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/shard"
)

// objects is the format s3: every object is a document, fetched when it is written. The bucket
// belongs to the id and one prefix and one suffix may be taken off the key, so that two keys never
// become one document: sequencers compare within a key only. Events have no time: a notification
// and EventBridge give the same change different ones, and the sequencer is enough.
type objects struct {
	*rules
	prefix, suffix string
}

func (s *objects) decode(o origin, b event.Body) event.Result {
	root := gjson.Parse(b.Text)
	var bucket, key, sequencer gjson.Result
	var name string
	switch b.Shape {
	case event.S3Record:
		in := child(root, "s3")
		object := child(in, "object")
		bucket, key, sequencer = child(child(in, "bucket"), "name"), child(object, "key"), child(object, "sequencer")
		name = strings.TrimPrefix(child(root, "eventName").Str, "s3:")
	case event.S3Change:
		object := child(root, "object")
		bucket, key, sequencer = child(child(root, "bucket"), "name"), child(object, "key"), child(object, "sequencer")
		name = b.Type
	default:
		return failed(contract("",
			"the message is no notification of S3, neither its own nor by EventBridge: check lull-source and "+
				"defaultSource"))
	}
	d := draft{version: version{"sequencer", sequencer}}
	switch {
	case name == "":
		return failed(contract("eventName", "eventName is missing"))
	case strings.HasPrefix(name, "ObjectCreated:"), name == "ObjectRestore:Completed", name == "Object Created",
		name == "Object Restore Completed":
		d.op = shard.Put
	case strings.HasPrefix(name, "ObjectRemoved:"), strings.HasPrefix(name, "LifecycleExpiration:"),
		name == "Object Deleted":
		d.op = shard.Delete
	default: // tags, access, storage classes, replication: the content is the same
		return event.Result{Skip: "S3 event " + event.Quote(name)}
	}
	if bucket.Str == "" {
		return failed(contract("bucket", "the bucket's name is missing"))
	}
	text := key.Str
	if b.Shape == event.S3Record {
		plain, err := url.QueryUnescape(text)
		if err != nil || !utf8.ValidString(plain) {
			return failed(contract("key", "the object's key is not URL-encoded UTF-8"))
		}
		text = plain
	}
	var f *event.Fault
	if d.doc, f = s.docID(bucket.Str, text); f != nil {
		return failed(f)
	}
	d.ref = "s3://" + bucket.Str + "/" + text
	if d.op == shard.Put {
		if f = s.allowed("bucket", bucket.Str, text); f != nil {
			return with(d.doc, f)
		}
	}
	return s.finish(o, &d)
}

// docID makes the id. A key without the prefix or suffix is refused: with "docs/" taken off, docs/a
// and a would be one document.
func (s *objects) docID(bucket, key string) (shard.DocID, *event.Fault) {
	if key == "" {
		return "", contract("key", "the object's key is missing")
	}
	short, ok := strings.CutPrefix(key, s.prefix)
	if ok {
		short, ok = strings.CutSuffix(short, s.suffix)
	}
	if !ok {
		return "",
			contract("key",
				"the object's key does not begin with %s and end with %s (s3.stripPrefix, s3.stripSuffix): it could "+
					"collide with one that does",
				event.Quote(s.prefix), event.Quote(s.suffix))
	}
	return s.id("", "key", bucket+"/"+short)
}
