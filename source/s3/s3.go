// SPDX-License-Identifier: Apache-2.0

// Package s3 decodes the notifications of S3, which S3 itself or EventBridge sends. Importing the
// package registers the kind s3.
//
// An object is one document, or it contains many documents. If it contains many, every line of the
// object is a message of another source.
//
// If the object is one document, lull loads the object when it writes the document. The bucket is
// part of the document's id. At most one prefix and one suffix may be removed from the key, so that
// two keys never become one document: the sequencers of different keys cannot be compared. Events
// have no time. S3 and EventBridge name different times for the same change, and the sequencer is
// enough to order changes.
package s3

import (
	"cmp"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

// Options are the options of the kind s3, under sources.<name>.s3.
type Options struct {
	S3 Key `json:"s3"`
}

// Key says how the key of an object becomes a document's id, and how lull reads the lines of
// objects.
type Key struct {
	// StripPrefix is removed from the beginning of a key. If it is empty, nothing is removed.
	StripPrefix string `json:"stripPrefix"`
	// StripSuffix is removed from the end of a key. If it is empty, nothing is removed.
	StripSuffix string `json:"stripSuffix"`
	// Lines is the name of the source that decodes every line of an object. If it is empty, an
	// object is one document.
	Lines string `json:"lines"`
	// LinesPerSecond is how many lines of one object become messages in a second, on average.
	LinesPerSecond int `json:"linesPerSecond"`
	// MaxText is the most bytes of text that lull reads of one object, after decompression.
	MaxText setting.Size `json:"maxText"`
}

// defaults are the options of a source whose settings set no option.
var defaults = Options{Key{LinesPerSecond: 500, MaxText: 10 << 30}}

func init() {
	source.Register(source.Kind{
		Kind: setting.Kind{
			Name: "s3", Doc: "Notifications of S3: every object is a document, or contains many.", Options: defaults,
			Settings: []setting.Setting{
				setting.Text("s3.stripPrefix", nil, "", "Removed from the beginning of a key.").Otherwise("none"),
				setting.Text("s3.stripSuffix", nil, "", "Removed from the end of a key.").Otherwise("none"),
				setting.Text("s3.lines", nil, "", "The source whose messages are the lines of an object: NDJSON, also "+
					"compressed with gzip.").Otherwise("none: an object is one document"),
				setting.Count("s3.linesPerSecond", 1, 100_000, "With lines: how many lines of one object become messages in "+
					"a second, on average."),
				setting.Bytes("s3.maxText", 1<<10, 10<<40, "With lines: how much text of one object is read, "+
					"after decompression."),
			},
		},
		Class: source.ClassSeq, Versioned: true, OwnDocument: true,
		New: func(r *source.Rules) (source.Format, error) {
			o, err := source.OptionsOf[Options](r.Settings)
			return &format{r, o.S3}, err
		},
		Lines: func(s source.Settings) string {
			o, _ := s.Options.(Options) // without options, Lines is empty
			return o.S3.Lines
		},
		Example: example,
	})
}

type format struct {
	*source.Rules
	Key
}

func (s *format) Decode(b event.Body) (d source.Draft, bad *event.Invalid) {
	root := gjson.Parse(b.Text)
	change, name := root, b.Type
	switch b.Shape {
	case event.S3Record:
		change, name = event.Child(root, "s3"), strings.TrimPrefix(event.Child(root, "eventName").Str, "s3:")
	case event.S3Change:
	default:
		return d, source.Invalid("",
			"the message is not a notification of S3, neither sent by S3 itself nor by EventBridge: "+
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
	default: // a change of tags, access, storage class or replication, which does not change the content
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
	if s.Lines != "" {
		return s.lines(d, change, root, bucket, key)
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

// lines decodes a notification of an object that contains many documents.
func (s *format) lines(d source.Draft, change, root gjson.Result, bucket, key string) (source.Draft, *event.Invalid) {
	if d.Op == event.Delete {
		// lull no longer knows which documents the removed object contained. A later object may
		// also contain the same documents.
		return source.Draft{Skip: "an object of many documents was removed: they stay"}, nil
	}
	object, version := event.Child(change, "object"), d.Version.Value
	switch {
	case key == "":
		return d, source.Invalid("key", "the object's key is missing")
	case version.Type != gjson.String || version.Str == "":
		return d, source.Invalid(d.Version.Field, "sequencer is missing: it orders the objects of one key")
	}
	if _, err := shard.ParseVersion(shard.ClassSeq, version.Str); err != nil {
		return d, source.Invalid(d.Version.Field, "%s", err)
	}
	etag := cmp.Or(event.Child(object, "eTag").Str, event.Child(object, "etag").Str) // S3 or EventBridge spelling
	// The time is zero for a notification by EventBridge, which names the time only in the
	// envelope.
	written, _ := time.Parse(time.RFC3339Nano, event.Child(root, "eventTime").Str)
	return source.Draft{Version: d.Version, Object: &event.Object{
		Bucket: bucket, Key: key, Version: version.Str, ETag: etag, Bytes: event.Child(object, "size").Int(),
		Written: written.UTC(), Source: s.Lines, PerSecond: s.LinesPerSecond, MaxText: int64(s.MaxText),
	}}, s.Allowed("bucket", bucket, key)
}

// docID makes the document's id. It refuses a key without the prefix or the suffix. Otherwise, with
// the prefix "docs/", the keys docs/a and a would become one document.
func (s *format) docID(bucket, key string) (event.DocID, *event.Invalid) {
	if key == "" {
		return "", source.Invalid("key", "the object's key is missing")
	}
	short, ok := strings.CutPrefix(key, s.StripPrefix)
	if ok {
		short, ok = strings.CutSuffix(short, s.StripSuffix)
	}
	if !ok {
		return "", source.Invalid("key",
			"the object's key does not begin with %s and end with %s (s3.stripPrefix, s3.stripSuffix): it could collide "+
				"with one that does", event.Quote(s.StripPrefix), event.Quote(s.StripSuffix))
	}
	return s.DocID("", "key", bucket+"/"+short)
}
