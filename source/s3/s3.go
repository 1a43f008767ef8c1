// Package s3 is the format of notifications of S3, by S3 itself or by EventBridge. Importing it
// registers the kind s3.
//
// Every object is a document, fetched when it is written. The bucket belongs to the id. One prefix
// and one suffix may be taken off the key. So two keys never become one document: sequencers
// compare within a key only. Events have no time: a notification and EventBridge give the same
// change different ones, and the sequencer is enough.
package s3

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

// Options are the options of the kind s3, under sources.<name>.s3.
type Options struct {
	S3 Key `json:"s3"`
}

// Key says how an object's key becomes an id.
type Key struct {
	// StripPrefix is removed from the beginning of a key. Empty means none.
	StripPrefix string `json:"stripPrefix"`
	// StripSuffix is removed from the end of a key. Empty means none.
	StripSuffix string `json:"stripSuffix"`
}

func init() {
	source.Register(source.Kind{
		Kind: setting.Kind{
			Name: "s3", Doc: "Notifications of S3: every object is a document.", Options: Options{},
			Settings: []setting.Setting{
				setting.Text("s3.stripPrefix", nil, "", "Removed from the beginning of a key.").Otherwise("none"),
				setting.Text("s3.stripSuffix", nil, "", "Removed from the end of a key.").Otherwise("none"),
			},
		},
		Class: source.ClassSeq, Versioned: true, OwnDocument: true,
		New: func(r *source.Rules) (source.Format, error) {
			o, err := source.OptionsOf[Options](r.Settings)
			return &format{r, o.S3}, err
		},
		Example: example,
	})
}

type format struct {
	*source.Rules
	strip Key
}

func (s *format) Decode(b event.Body) (d source.Draft, bad *event.Invalid) {
	root := gjson.Parse(b.Text)
	change, name := root, b.Type
	switch b.Shape {
	case event.S3Record:
		change, name = event.Child(root, "s3"), strings.TrimPrefix(event.Child(root, "eventName").Str, "s3:")
	case event.S3Change:
	default:
		return d, source.Invalid("", "the message is not a notification of S3, neither its own nor by EventBridge: "+
			"check lull-source and defaultSource")
	}
	d.Version = source.Version{Field: "sequencer", Value: event.Child(change, "object", "sequencer")}
	switch {
	case name == "":
		return d, source.Invalid("eventName", "eventName is missing")
	case strings.HasPrefix(name, "ObjectCreated:"), name == "ObjectRestore:Completed", name == "Object Created",
		name == "Object Restore Completed":
		d.Op = event.Put
	case strings.HasPrefix(name, "ObjectRemoved:"), strings.HasPrefix(name, "LifecycleExpiration:"),
		name == "Object Deleted":
		d.Op = event.Delete
	default: // tags, access, storage classes, replication: the content is the same
		d.Skip = "S3 event " + event.Quote(name)
		return d, nil
	}
	bucket, key := event.Child(change, "bucket", "name").Str, event.Child(change, "object", "key").Str
	if bucket == "" {
		return d, source.Invalid("bucket", "the bucket's name is missing")
	}
	if b.Shape == event.S3Record {
		plain, err := url.QueryUnescape(key)
		if err != nil || !utf8.ValidString(plain) {
			return d, source.Invalid("key", "the object's key is not URL-encoded UTF-8")
		}
		key = plain
	}
	if d.Doc, bad = s.docID(bucket, key); bad != nil {
		return d, bad
	}
	d.Ref = "s3://" + bucket + "/" + key
	if d.Op == event.Put {
		bad = s.Allowed("bucket", bucket, key)
	}
	if bad == nil {
		bad = d.InRun(b)
	}
	return d, bad
}

// docID makes the id. A key without the prefix or suffix is refused: with "docs/" taken off, docs/a
// and a would be one document.
func (s *format) docID(bucket, key string) (event.DocID, *event.Invalid) {
	if key == "" {
		return "", source.Invalid("key", "the object's key is missing")
	}
	short, ok := strings.CutPrefix(key, s.strip.StripPrefix)
	if ok {
		short, ok = strings.CutSuffix(short, s.strip.StripSuffix)
	}
	if !ok {
		return "", source.Invalid("key",
			"the object's key does not begin with %s and end with %s (s3.stripPrefix, s3.stripSuffix): it could collide "+
				"with one that does", event.Quote(s.strip.StripPrefix), event.Quote(s.strip.StripSuffix))
	}
	return s.DocID("", "key", bucket+"/"+short)
}
