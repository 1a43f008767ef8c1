// Package debezium is the format of Debezium's change events. Importing it registers the kind
// debezium.
//
// The body is the value, with or without schema, alone or beside the key in an object
// {"key":...,"value":...} or {"key":...,"payload":...}. Both may be text or base64. Or it is a
// record of Kafka or Kinesis, as EventBridge Pipes sends it: the key is then the record's.
package debezium

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

// Options are the options of the kind debezium, under sources.<name>.debezium.
type Options struct {
	Debezium Pointers `json:"debezium"`
}

// Pointers are JSON pointers (RFC 6901) into the change event's payload.
type Pointers struct {
	// Key points to the document's id. Empty means the message's key payload.
	Key string `json:"key"`
	// Version points to the version. Empty means /source/lsn, PostgreSQL's.
	Version string `json:"version"`
	// Binlog takes MySQL's and MariaDB's place in the binlog as the version: the number of the file,
	// the position and the row. The class must be int. The file's number begins anew on another server:
	// raise the source's epoch then.
	Binlog bool `json:"binlog"`
}

const defaultVersion = "/source/lsn"

func init() {
	source.Register(source.Kind{
		Kind: setting.Kind{
			Name: "debezium", Doc: "Change events of Debezium.",
			Options: Options{Pointers{Version: defaultVersion}},
			Settings: []setting.Setting{
				setting.Pointer("debezium.key", "Where the document's id is.").Otherwise("the key payload"),
				setting.Pointer("debezium.version", "Where the version is.").Otherwise(defaultVersion),
				setting.Flag("debezium.binlog", "Takes the version from the place in the binlog of MySQL or MariaDB: file, "+
					"position and row. Needs class: int. Raise the source's epoch when another server takes over."),
			},
		},
		Class:   source.ClassLSN,
		Check:   check,
		New:     newFormat,
		Example: example,
	})
}

func check(s source.Settings) (problems []setting.Problem) {
	options, _ := s.Options.(Options)
	if o := options.Debezium; o.Binlog && s.Class != source.ClassInt {
		problems = append(problems, setting.Problem{
			Setting: "class", Value: string(s.Class), Problem: "does not fit debezium.binlog, whose versions are numbers",
			Fix: "set class to int, or remove debezium.binlog",
		})
	} else if o.Binlog && o.Version != defaultVersion && o.Version != "" {
		problems = append(problems, setting.Problem{
			Setting: "debezium.version", Value: o.Version, Problem: "stands beside debezium.binlog, which is the version",
			Fix: "remove one of them",
		})
	}
	return problems
}

type format struct {
	*source.Rules
	binlog  bool
	key     source.Pointer // the empty one means the message's key
	version source.Pointer
}

func newFormat(r *source.Rules) (source.Format, error) {
	o, err := source.OptionsOf[Options](r.Settings)
	if err != nil {
		return nil, err
	}
	key, err := source.ParsePointer(o.Debezium.Key)
	if err != nil {
		return nil, fmt.Errorf("read debezium.key: %w", err)
	}
	version, err := source.ParsePointer(cmp.Or(o.Debezium.Version, defaultVersion))
	if err != nil {
		return nil, fmt.Errorf("read debezium.version: %w", err)
	}
	return &format{r, o.Debezium.Binlog, key, version}, nil
}

func (s *format) Decode(b event.Body) (d source.Draft, bad *event.Invalid) {
	if b.Text == "null" {
		d.Skip = tombstone
		return d, nil
	}
	if bad = source.Object(b); bad != nil {
		return d, bad
	}
	key, value, bad := keyAndValue(gjson.Parse(b.Text))
	if bad != nil {
		return d, bad
	}
	if value.Type == gjson.Null {
		d.Skip = tombstone
		return d, nil
	}
	if !key.Exists() {
		key = source.Key(b.Key) // of the record in Kafka or Kinesis
	}
	op := event.Child(value, "op")
	switch op.Str {
	case "t", "m": // truncate, logical decoding message: of no document
		d.Skip = "op " + op.Str
		return d, nil
	case "c", "u", "r":
		d.Op = event.Put
	case "d":
		d.Op = event.Delete
	default:
		if op.Type == gjson.String {
			return d, source.Invalid("op", "op %s is unknown: want c, u, r or d", event.Quote(op.Str))
		}
		return d, source.Invalid("op", "op is %s: the message is not a change event of Debezium", source.TypeName(op))
	}
	if d.Doc, bad = s.docID(key, value, d.Op); bad != nil {
		return d, bad
	}
	if d.Op == event.Put {
		after := event.Child(value, "after")
		if !after.IsObject() {
			return d, source.Invalid("after", "after is %s: op %s carries the row there", source.TypeName(after), op.Str)
		}
		d.Data = after.Raw
	}
	// A snapshot reads rows again under the version of the snapshot. It has no run of its own: only
	// its later time tells it from live events. That writes an equal row again, harmlessly.
	d.Resync = op.Str == "r"
	// The source's time, not the connector's: a restarted connector sends the same change again,
	// which must be a duplicate.
	d.Time, bad = source.Instant("source/ts_ms", event.Child(value, "source", "ts_ms"), true)
	d.Version = source.Version{Field: strings.TrimPrefix(s.version.Text, "/"), Value: s.version.In(value)}
	if s.binlog && bad == nil {
		d.Version, bad = binlog(event.Child(value, "source"))
	}
	if bad == nil {
		bad = d.InRun(b)
	}
	return d, bad
}

// binlog is the place of a change in the binlog as one number. The position alone begins anew with
// every file, the GTID on every server, and source.ts_ms counts seconds.
func binlog(from gjson.Result) (v source.Version, bad *event.Invalid) {
	m := event.Members(from, "file", "pos", "row")
	name := m["file"].Str
	number := name[strings.LastIndexByte(name, '.')+1:]
	pos, row := m["pos"].Raw, cmp.Or(m["row"].Raw, "0")
	switch {
	case !digits(number, 10):
		bad = source.Invalid("source/file", "source/file %s is not a binlog's: want one such as mysql-bin.000003",
			event.Quote(name))
	case !digits(pos, posDigits):
		bad = source.Invalid("source/pos", "source/pos is %s: want the position in the binlog", source.TypeName(m["pos"]))
	case !digits(row, rowDigits):
		bad = source.Invalid("source/row", "source/row is %s: want the number of the row", source.TypeName(m["row"]))
	}
	if bad != nil {
		bad.Reason = event.VersionInvalid
		return v, bad
	}
	text := number + strings.Repeat("0", posDigits-len(pos)) + pos + strings.Repeat("0", rowDigits-len(row)) + row
	text = plain(text)
	return source.Version{Field: "source/pos", Value: gjson.Result{Type: gjson.Number, Raw: text}}, nil
}

// How many digits a position and a row have at most.
const posDigits, rowDigits = 12, 8

func digits(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}

// tombstone is a null value: it lets Kafka compact the delete before it away.
const tombstone = "tombstone"

// docID is the configured key, or the key of the message. A configured key in the row's new image
// is looked up in its old one for a delete, which has no other.
func (s *format) docID(key, value gjson.Result, op event.Operation) (event.DocID, *event.Invalid) {
	if len(s.key.Tokens) == 0 {
		id, bad := s.keyText(key)
		if bad != nil {
			return "", bad
		}
		return s.DocID("", "key", id)
	}
	p := s.key
	if op == event.Delete && p.Tokens[0] == "after" {
		p.Tokens = append([]string{"before"}, p.Tokens[1:]...)
	}
	id, bad := source.Identity(p.Text, p.In(value))
	if bad != nil {
		return "", bad
	}
	return s.DocID("", p.Text, id)
}

// keyText is the key as an id.
func (s *format) keyText(key gjson.Result) (string, *event.Invalid) {
	if key.Type == gjson.Null {
		return "", source.Invalid("key",
			"the message carries no key: send it beside the value, or set sources.%s.debezium.key", s.Name)
	}
	return source.KeyText("key", key)
}

// keyAndValue finds the two halves of a Kafka message and takes their schemas off.
func keyAndValue(root gjson.Result) (key, value gjson.Result, bad *event.Invalid) {
	value = root
	m := event.Members(root, "op", "key", "value", "payload", "offset")
	if !m["op"].Exists() && (m["value"].Exists() || m["key"].Exists()) {
		of := "value"
		switch {
		case m["value"].Exists() || m["offset"].Exists(): // a record of Kafka without a value is a tombstone
		case m["payload"].Exists():
			of = "payload"
		default:
			return key, value, source.Invalid("value",
				"value is missing beside key: send the change event there, or null for a tombstone")
		}
		if key, bad = half("key", m["key"]); bad != nil {
			return key, value, bad
		}
		if value, bad = half(of, m[of]); bad != nil {
			return key, value, bad
		}
	}
	if payload := event.Child(value, "payload"); payload.Exists() && !event.Child(value, "op").Exists() {
		value = payload
	}
	return key, value, nil
}

// half is a key or value: JSON as it is, as text, or as text in base64.
func half(field string, v gjson.Result) (gjson.Result, *event.Invalid) {
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
			return v, source.Invalid(field, "%s is neither JSON nor JSON in base64", field)
		}
		text = string(decoded)
	}
	return gjson.Parse(text), nil
}
