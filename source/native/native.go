// SPDX-License-Identifier: Apache-2.0

package native

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

func init() {
	source.Register(source.Kind{
		Kind:    setting.Kind{Name: "native", Doc: "lull's own events: CloudEvents 1.0 in JSON."},
		Class:   source.ClassInt,
		New:     func(r *source.Rules) (source.Format, error) { return &format{r}, nil },
		Example: example,
		Resync:  markRun,
	})
}

// format embeds the rules, so its method Document returns the payload or a projection of it.
type format struct{ *source.Rules }

// The types of native events.
const (
	typeChanged = "doc.changed"
	typeDeleted = "doc.deleted"
	typeTouched = "doc.touched" // without a payload: lull loads it from dataref when it writes the document
)

// fields are the fields of an event that lull uses. It does not use the fields id and source of a
// CloudEvent.
type fields struct {
	specVersion, kind, subject, collection, at, sequence, sequenceType gjson.Result
	mode, run, notBefore, dataRef, contentType, data, dataBase64       gjson.Result
}

// read scans the body once. The switch keeps it fast, because in most stacks every message is read
// here.
func read(text string) (n fields) {
	for name, v := range gjson.Parse(text).ForEach {
		switch name.Str {
		case "specversion":
			n.specVersion = v
		case "type":
			n.kind = v
		case "subject":
			n.subject = v
		case "collection":
			n.collection = v
		case "time":
			n.at = v
		case "sequence":
			n.sequence = v
		case "sequencetype":
			n.sequenceType = v
		case "mode":
			n.mode = v
		case "resyncrun":
			n.run = v
		case "notbefore":
			n.notBefore = v
		case "dataref":
			n.dataRef = v
		case "datacontenttype":
			n.contentType = v
		case "data":
			n.data = v
		case "data_base64":
			n.dataBase64 = v
		}
	}
	return n
}

func (s *format) Decode(b event.Body) (d source.Draft, bad *event.Invalid) {
	if bad = source.Object(b); bad != nil {
		return d, bad
	}
	n := read(b.Text)
	d.Version = source.Version{Field: "sequence", Value: n.sequence}
	if d.Doc, bad = s.subject(&n); bad != nil {
		return d, bad
	}
	if d.Op, bad = operation(&n); bad != nil {
		return d, bad
	}
	if bad = s.order(&n, &d); bad != nil {
		return d, bad
	}
	if d.Time, bad = source.Instant("time", n.at, false); bad != nil {
		return d, bad
	}
	if d.NotBefore, bad = source.Instant("notbefore", n.notBefore, false); bad != nil {
		return d, bad
	}
	return d, s.payload(&n, &d)
}

// markRun marks an event as part of a resync run.
func markRun(_ source.Settings, body, run, collection string) (string, error) {
	for _, m := range [][2]string{{"mode", "resync"}, {"resyncrun", run}, {"collection", collection}} {
		if m[1] != "" {
			body = source.Pointer{Tokens: m[:1]}.Put(body, source.Quoted(m[1]))
		}
	}
	return body, nil
}

func (s *format) subject(n *fields) (event.DocID, *event.Invalid) {
	if v := n.specVersion; v.Exists() && v.Str != "1.0" {
		return "", source.Invalid("specversion", "specversion must be \"1.0\" or left out")
	}
	id, bad := source.TextIdentity("subject", n.subject)
	if bad != nil {
		return "", bad
	}
	collection, bad := source.Optional("collection", n.collection)
	if bad != nil {
		return "", bad
	}
	return s.DocID(collection, "subject", id)
}

func operation(n *fields) (event.Operation, *event.Invalid) {
	switch n.kind.Str {
	case typeChanged, typeTouched:
		return event.Put, nil
	case typeDeleted:
		return event.Delete, nil
	}
	const want = "want " + typeChanged + ", " + typeDeleted + " or " + typeTouched
	if n.kind.Type == gjson.String {
		return "", source.Invalid("type", "type %s is unknown: %s", event.Quote(n.kind.Str), want)
	}
	return "", source.Invalid("type", "type is %s: %s", source.TypeName(n.kind), want)
}

// order reads the mode and the resync run, and checks the class of the version.
func (s *format) order(n *fields, d *source.Draft) *event.Invalid {
	mode, bad := source.Optional("mode", n.mode)
	if bad != nil {
		return bad
	}
	switch mode {
	case "", "live": // a live event is never accepted twice, so its resyncrun is not used
	case "resync":
		d.Resync = true
		if d.Run, bad = source.ResyncRun(n.run); bad != nil {
			return bad
		}
	default:
		return source.Invalid("mode", "mode %s is unknown: use live or resync", event.Quote(mode))
	}
	class, bad := source.Optional("sequencetype", n.sequenceType)
	if bad != nil {
		return bad
	}
	if class == "Integer" { // the spelling in the sequence extension of CloudEvents
		class = "int"
	}
	if class == "" || class == string(s.Settings.Class) {
		return nil
	}
	if _, err := event.ParseClass(class); err != nil {
		return source.VersionInvalid("sequencetype",
			"sequencetype %s is unknown: source %s has class %s: send this class, or omit the field", event.Quote(class), s.Name,
			s.Settings.Class)
	}
	bad = source.Invalid("sequencetype",
		"sequencetype is %s, but versions of source %s always have class %s: send %[3]s", class, s.Name,
		s.Settings.Class)
	bad.Reason = event.ClassMismatch
	return bad
}

// payload reads data and dataref. A put has exactly one of the two, and a delete has at most one.
func (s *format) payload(n *fields, d *source.Draft) *event.Invalid {
	if n.dataBase64.Exists() {
		return source.Invalid("data_base64", "binary data is not indexed: send data as a JSON object")
	}
	ref, bad := source.Optional("dataref", n.dataRef)
	if bad != nil {
		return bad
	}
	data := n.data.Type != gjson.Null
	if data && ref != "" {
		return source.Invalid("dataref", "data and dataref exclude each other: send one of them")
	}
	if data {
		d.Data = n.data.Raw
	}
	d.Ref = ref
	touched := n.kind.Str == typeTouched
	switch {
	case d.Op == event.Delete, s.Settings.Fetch != nil:
		return nil
	case touched && data:
		return source.Invalid("data", "%s has no data: send dataref, or type %s", typeTouched, typeChanged)
	case touched && ref == "":
		return source.Invalid("dataref",
			"dataref is missing: an event of type %s names the payload there, e.g. \"dataref\":\"s3://bucket/key\"", typeTouched)
	case ref == "" && !data:
		return source.Invalid("data", "data is %s: send the document as a JSON object, or name it in dataref",
			source.TypeName(n.data))
	case data && !n.data.IsObject():
		return source.Invalid("data", "data is %s: send a JSON object", source.TypeName(n.data))
	case n.contentType.Exists() && !isJSON(n.contentType.Str):
		return source.Invalid("datacontenttype", "datacontenttype %s is not indexed: send application/json",
			event.Quote(n.contentType.Str))
	case ref != "":
		return s.Reference("dataref", ref)
	}
	return nil
}

// isJSON reports whether a media type is JSON: application/json or one that ends in +json.
func isJSON(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}
