package source

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/shard"
)

// native is the format of docs/events.md: CloudEvents 1.0 structured JSON, or the same fields
// without specversion.
type native struct{ *rules }

// The types of native events.
const (
	typeChanged = "doc.changed"
	typeDeleted = "doc.deleted"
	typeTouched = "doc.touched" // no payload: it is fetched from dataref when it is written
)

// nativeFields are the fields that mean something. id and source are the producer's own.
type nativeFields struct {
	specVersion, kind, subject, collection, at, sequence, sequenceType gjson.Result
	mode, run, notBefore, dataRef, contentType, data, dataBase64       gjson.Result
}

func readNative(text string) (n nativeFields) {
	gjson.Parse(text).ForEach(func(name, v gjson.Result) bool {
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
		return true
	})
	return n
}

func (s *native) decode(o origin, b event.Body) event.Result {
	if f := object(b); f != nil {
		return failed(f)
	}
	n := readNative(b.Text)
	d := draft{op: shard.Put}
	var f *event.Fault
	if d.doc, f = s.subject(&n); f != nil {
		return failed(f)
	}
	if f = s.operation(&n, &d); f == nil {
		f = s.order(&n, &d)
	}
	if f == nil {
		f = s.times(&n, &d)
	}
	if f == nil {
		f = s.payload(&n, &d)
	}
	if f != nil {
		return with(d.doc, f)
	}
	d.version = version{"sequence", n.sequence}
	return s.finish(o, &d)
}

func (s *native) subject(n *nativeFields) (shard.DocID, *event.Fault) {
	if v := n.specVersion; v.Exists() && v.Str != "1.0" {
		return "", contract("specversion", "specversion must be \"1.0\" or left out")
	}
	if n.subject.Type != gjson.String && n.subject.Type != gjson.Null {
		return "", contract("subject", "subject is %s: send the document's id as text", typeName(n.subject))
	}
	id, f := identity("subject", n.subject)
	if f != nil {
		return "", f
	}
	collection, f := optional("collection", n.collection)
	if f != nil {
		return "", f
	}
	return s.id(shard.Collection(collection), "subject", id)
}

func (s *native) operation(n *nativeFields, d *draft) *event.Fault {
	switch {
	case n.kind.Type == gjson.String && (n.kind.Str == typeChanged || n.kind.Str == typeTouched):
	case n.kind.Type == gjson.String && n.kind.Str == typeDeleted:
		d.op = shard.Delete
	case n.kind.Type == gjson.String:
		return contract("type", "type %s is unknown: want %s, %s or %s", event.Quote(n.kind.Str), typeChanged,
			typeDeleted, typeTouched)
	default:
		return contract("type", "type is %s: want %s, %s or %s", typeName(n.kind), typeChanged, typeDeleted,
			typeTouched)
	}
	return nil
}

// order reads what belongs to the order key besides sequence and time.
func (s *native) order(n *nativeFields, d *draft) *event.Fault {
	mode, f := optional("mode", n.mode)
	if f != nil {
		return f
	}
	switch mode {
	case "", "live": // a resyncrun means nothing here: a live event is never accepted twice
	case "resync":
		d.resync = true
		if d.run, f = resyncRun(n.run); f != nil {
			return f
		}
	default:
		return contract("mode", "mode %s is unknown: want live or resync", event.Quote(mode))
	}
	class, f := optional("sequencetype", n.sequenceType)
	if f != nil {
		return f
	}
	if class == "Integer" { // as the sequence extension of CloudEvents spells it
		class = "int"
	}
	if class == "" || class == s.class.String() {
		return nil
	}
	if _, err := shard.ParseClass(class); err != nil {
		return &event.Fault{Reason: deadletter.VersionInvalid, Field: "sequencetype", Problem: fmt.Sprintf(
			"sequencetype %s is unknown: source %s has class %s; send that or leave it out", event.Quote(class), s.name,
			s.class)}
	}
	return &event.Fault{Reason: deadletter.ClassMismatch, Field: "sequencetype", Problem: fmt.Sprintf(
		"sequencetype is %s, but versions of source %s have class %s, which is fixed: send %[3]s", class, s.name,
		s.class)}
}

// resyncRun reads the run of an event in mode resync: without one the same version could not be
// told from a duplicate.
func resyncRun(v gjson.Result) (shard.Run, *event.Fault) {
	if v.Type != gjson.String || v.Str == "" {
		return shard.Run{}, contract("resyncrun",
			"resyncrun is missing: with mode resync send the run's ULID, e.g. "+
				"\"resyncrun\":\"01JD2V6Y5T3KQ8Z4M7N9P0R1S2\"")
	}
	run, err := shard.ParseRun(v.Str)
	if err != nil {
		return shard.Run{}, contract("resyncrun",
			"%s is no ULID: send 26 characters of Crockford's base 32, not all zero", event.Quote(v.Str))
	}
	return run, nil
}

func (s *native) times(n *nativeFields, d *draft) (f *event.Fault) {
	if d.at, f = instant("time", n.at, false); f != nil {
		return f
	}
	d.notBefore, f = instant("notbefore", n.notBefore, false)
	return f
}

// payload reads data and dataref, of which a put has exactly one and a delete at most one.
func (s *native) payload(n *nativeFields, d *draft) *event.Fault {
	if n.dataBase64.Exists() {
		return contract("data_base64", "binary data is not indexed: send data as a JSON object")
	}
	ref, f := optional("dataref", n.dataRef)
	if f != nil {
		return f
	}
	data := n.data.Type != gjson.Null
	if data && ref != "" {
		return contract("dataref", "data and dataref exclude each other: send one of them")
	}
	if data {
		d.data = n.data.Raw
	}
	d.ref = ref
	if d.op == shard.Delete {
		return nil
	}
	switch {
	case n.kind.Str == typeTouched && data:
		return contract("data", "%s has no data: send dataref, or type %s", typeTouched, typeChanged)
	case n.kind.Str == typeTouched && ref == "":
		return contract("dataref",
			"dataref is missing: %s names the payload there, e.g. \"dataref\":\"s3://bucket/key\"", typeTouched)
	case ref == "" && !data:
		return contract("data", "data is %s: send the document as a JSON object, or name it in dataref",
			typeName(n.data))
	case data && !n.data.IsObject():
		return contract("data", "data is %s: send a JSON object", typeName(n.data))
	case n.contentType.Exists() && !isJSON(n.contentType.Str):
		return contract("datacontenttype", "datacontenttype %s is not indexed: send application/json",
			event.Quote(n.contentType.Str))
	case ref != "":
		return s.reference("dataref", ref)
	}
	return nil
}

// isJSON reports whether a media type is JSON: application/json or one that ends in +json.
func isJSON(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// optional reads a text that may be left out or null.
func optional(field string, v gjson.Result) (string, *event.Fault) {
	switch v.Type {
	case gjson.String:
		return v.Str, nil
	case gjson.Null:
		return "", nil
	}
	return "", contract(field, "%s is %s: send text or leave it out", field, typeName(v))
}

// object says why a body cannot be the event of a source that reads JSON objects, or nil.
func object(b event.Body) *event.Fault {
	if b.Shape != event.Plain {
		return contract("",
			"the message is a notification of S3: it needs a source of kind s3, chosen by the attribute lull-source "+
				"or as defaultSource")
	}
	if b.Text[0] != '{' {
		return contract("", "the body is %s: send a JSON object", typeName(gjson.Parse(b.Text)))
	}
	return nil
}
