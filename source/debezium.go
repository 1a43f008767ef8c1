package source

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/shard"
)

// debezium is the format of Debezium's change events. The body is the value, with or without
// schema, alone or beside the key in an object {"key":...,"value":...}, where both may be text or
// base64 as EventBridge Pipes has them from Kafka.
type debezium struct {
	*rules
	key     pointer // the empty one means the message's key
	version pointer
}

func newDebezium(r *rules, c config.Debezium) (format, error) {
	key, err := newPointer(c.Key)
	if err != nil {
		return nil, fmt.Errorf("read debezium.key: %w", err)
	}
	version, err := newPointer(c.Version)
	if err != nil {
		return nil, fmt.Errorf("read debezium.version: %w", err)
	}
	return &debezium{r, key, version}, nil
}

func (s *debezium) decode(o origin, b event.Body) event.Result {
	if b.Text == "null" {
		return event.Result{Skip: tombstone}
	}
	if f := object(b); f != nil {
		return failed(f)
	}
	key, value, f := keyAndValue(gjson.Parse(b.Text))
	if f != nil {
		return failed(f)
	}
	if value.Type == gjson.Null {
		return event.Result{Skip: tombstone}
	}
	op := child(value, "op")
	switch op.Str {
	case "t", "m": // truncate, logical decoding message: of no document
		return event.Result{Skip: "op " + op.Str}
	case "c", "u", "r", "d":
	default:
		if op.Type == gjson.String {
			return failed(contract("op", "op %s is unknown: want c, u, r or d", event.Quote(op.Str)))
		}
		return failed(contract("op", "op is %s: the message is no change event of Debezium", typeName(op)))
	}
	d := draft{op: shard.Put}
	if d.doc, f = s.docID(key, value, op.Str); f != nil {
		return failed(f)
	}
	if op.Str == "d" {
		d.op = shard.Delete
	} else {
		after := child(value, "after")
		if !after.IsObject() {
			return with(d.doc, contract("after", "after is %s: op %s carries the row there", typeName(after), op.Str))
		}
		d.data = after.Raw
	}
	// A snapshot reads rows again under the version of the snapshot. It has no run of its own, so
	// that it is told from live events by its later time only; that writes an equal row again,
	// harmlessly.
	d.resync = op.Str == "r"
	// The source's time, not the connector's: a restarted connector sends the same change again,
	// which must be a duplicate.
	if d.at, f = instant("source/ts_ms", child(child(value, "source"), "ts_ms"), true); f != nil {
		return with(d.doc, f)
	}
	d.version = version{strings.TrimPrefix(s.version.text, "/"), s.version.in(value)}
	return s.finish(o, &d)
}

// tombstone is a null value: it lets Kafka compact the delete before it away.
const tombstone = "tombstone"

// docID is the configured key, or the key of the message. A configured key in the row's new image
// is looked up in its old one for a delete, which has no other.
func (s *debezium) docID(key, value gjson.Result, op string) (shard.DocID, *event.Fault) {
	const after, before = "after", "before"
	if len(s.key.tokens) > 0 {
		p := s.key
		if op == "d" && p.tokens[0] == after {
			p.tokens = append([]string{before}, p.tokens[1:]...)
		}
		id, f := identity(s.key.text, p.in(value))
		if f != nil {
			return "", f
		}
		return s.id("", s.key.text, id)
	}
	id, f := s.keyText(key)
	if f != nil {
		return "", f
	}
	return s.id("", "key", id)
}

// keyText is the key as an id: a scalar, or the columns of a struct as joinKey has them.
func (s *debezium) keyText(key gjson.Result) (string, *event.Fault) {
	switch {
	case key.Type == gjson.Null:
		return "",
			contract("key", "the message carries no key: send it beside the value, or set sources.%s.debezium.key",
				s.name)
	case !key.IsObject():
		return identity("key", key)
	}
	var parts []part
	var fault *event.Fault
	key.ForEach(func(name, v gjson.Result) bool {
		var text string
		if text, fault = identity("key", v); fault != nil {
			return false
		}
		parts = append(parts, part{name.Str, text})
		return true
	})
	return joinKey(parts), fault
}

// keyAndValue finds the two halves of a Kafka message and takes their schemas off.
func keyAndValue(root gjson.Result) (key, value gjson.Result, f *event.Fault) {
	value = root
	if inner := child(root, "value"); !child(root, "op").Exists() && (inner.Exists() || child(root, "key").Exists()) {
		if key, f = half("key", child(root, "key")); f != nil {
			return key, value, f
		}
		if value, f = half("value", inner); f != nil {
			return key, value, f
		}
	}
	if payload := child(value, "payload"); payload.Exists() && !child(value, "op").Exists() {
		value = payload
	}
	return withoutSchema(key), value, nil
}

// half is a key or value: JSON as it is, as text, or as text in base64.
func half(field string, v gjson.Result) (gjson.Result, *event.Fault) {
	if v.Type != gjson.String {
		return v, nil
	}
	if v.Str == "" {
		return gjson.Result{}, nil
	}
	text := v.Str
	if event.Check(text) != nil {
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil || event.Check(string(decoded)) != nil {
			return v, contract(field, "%s is neither JSON nor JSON in base64", field)
		}
		text = string(decoded)
	}
	return gjson.Parse(text), nil
}

// withoutSchema takes a key's pair of schema and payload apart, which the JSON converter of Kafka
// Connect writes unless told not to.
func withoutSchema(v gjson.Result) gjson.Result {
	if payload := child(v, "payload"); payload.Exists() && child(v, "schema").Exists() {
		return payload
	}
	return v
}
