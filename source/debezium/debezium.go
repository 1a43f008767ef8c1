// SPDX-License-Identifier: Apache-2.0

// Package debezium is the format of Debezium's change events. Importing it registers the kind
// debezium.
//
// The body of a message is the value of a Debezium record, with or without its schema. The value
// may be alone, or next to the key in an object {"key":...,"value":...} or
// {"key":...,"payload":...}. Key and value may be JSON, text or base64. The body may also be a
// record of Kafka or Kinesis, as EventBridge Pipes sends it. The key is then the key of that
// record.
package debezium

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
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
	// Key points to the document's id. If Key is empty, the id is the payload of the message's key.
	Key string `json:"key"`
	// Version points to the version. Empty means /source/lsn, the version of PostgreSQL.
	Version string `json:"version"`
	// Binlog takes the position in the binlog of MySQL or MariaDB as the version: the number of the
	// file, the position in it and the row. The class must be int. Another server starts again with
	// low file numbers, so raise the source's epoch when another server takes over.
	Binlog bool `json:"binlog"`
	// Sequence takes PostgreSQL's source.sequence as the version: the position of the last commit
	// before the change, and then the position of the change. The class must be int. With Sequence,
	// the rows of a snapshot are also ordered correctly with changes whose transaction was open
	// during the snapshot.
	Sequence bool `json:"sequence"`
}

const defaultVersion = "/source/lsn"

func init() {
	source.Register(source.Kind{
		Kind: setting.Kind{
			Name: "debezium", Doc: "Change events of Debezium.",
			Options: Options{Pointers{Version: defaultVersion}},
			Settings: []setting.Setting{
				setting.Pointer("debezium.key", "The path of the document's id.").Otherwise("the key payload"),
				setting.Pointer("debezium.version", "The path of the version.").Otherwise(defaultVersion),
				setting.Flag(
					"debezium.binlog",
					"Takes the version from the position in the binlog of MySQL or MariaDB. Needs class: int. "+
						"Raise the source's epoch when another server takes over.",
				),
				setting.Flag(
					"debezium.sequence",
					"Takes the version from PostgreSQL's source.sequence. Needs class: int, and orders snapshots "+
						"too.",
				),
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
	o := options.Debezium
	chosen := o.versionSetting()
	switch {
	case o.Binlog && o.Sequence:
		problems = append(problems, setting.Problem{
			Setting: "debezium.sequence", Value: "true", Problem: "cannot be used together with debezium.binlog: each " +
				"defines the version",
			Fix: "keep sequence for PostgreSQL, binlog for MySQL and MariaDB",
		})
	case chosen != "" && s.Class != source.ClassInt:
		problems = append(problems, setting.Problem{
			Setting: "class", Value: string(s.Class), Problem: "does not fit " + chosen + ", whose versions are numbers",
			Fix: "set class to int, or remove " + chosen,
		})
	case chosen != "" && o.Version != defaultVersion && o.Version != "":
		problems = append(problems, setting.Problem{
			Setting: "debezium.version", Value: o.Version, Problem: "cannot be used together with " + chosen +
				", which defines the version",
			Fix: "remove one of them",
		})
	}
	return problems
}

// versionSetting returns the name of the setting that combines several fields into a version. If
// one field is the version, versionSetting returns an empty text.
func (p Pointers) versionSetting() string {
	switch {
	case p.Binlog:
		return "debezium.binlog"
	case p.Sequence:
		return "debezium.sequence"
	}
	return ""
}

type format struct {
	*source.Rules
	order   func(op string, from gjson.Result) (source.Version, *event.Invalid) // nil if one field is the version
	key     source.Pointer                                                      // if empty, the message's key is the id
	version source.Pointer
}

func newFormat(r *source.Rules) (source.Format, error) {
	o, err := source.OptionsOf[Options](r.Settings)
	if err != nil {
		return nil, err
	}
	f := &format{Rules: r}
	switch {
	case o.Debezium.Binlog:
		f.order = binlog
	case o.Debezium.Sequence:
		f.order = sequence
	}
	f.key, f.version, err = o.Debezium.parse()
	return f, err
}

// parse reads the pointers.
func (p Pointers) parse() (key, version source.Pointer, err error) {
	if key, err = source.ParsePointer(p.Key); err != nil {
		return key, version, fmt.Errorf("read debezium.key: %w", err)
	}
	if version, err = source.ParsePointer(cmp.Or(p.Version, defaultVersion)); err != nil {
		return key, version, fmt.Errorf("read debezium.version: %w", err)
	}
	return key, version, nil
}

// beforePointer turns a pointer into the row's new image into a pointer into the row's old image,
// because a delete has only the old image.
func beforePointer(p source.Pointer) source.Pointer {
	if p.Tokens[0] == "after" {
		p.Tokens = append([]string{"before"}, p.Tokens[1:]...)
	}
	return p
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
		key = source.Key(b.Key) // the key of the record in Kafka or Kinesis
	}
	op := event.Child(value, "op")
	switch op.Str {
	case "m": // a logical decoding message, which belongs to no document
		d.Skip = "op m"
		return d, nil
	case "t":
		return d, source.Invalid("op", "op t: the table was truncated, but lull does not delete all documents of a table: "+
			"compare with the table (lull index repair --source FILE), then drop this dead letter")
	case "c", "u", "r":
		d.Op = event.Put
	case "d":
		d.Op = event.Delete
	default:
		if op.Type == gjson.String {
			return d, source.Invalid("op", "op %s is unknown: send c, u, r or d", event.Quote(op.Str))
		}
		if d.Skip = skipReason(key, value); d.Skip != "" {
			return d, nil
		}
		return d, source.Invalid("op", "op is %s: the message is not a change event of Debezium", source.TypeName(op))
	}
	if d.Doc, bad = s.docID(key, value, d.Op); bad != nil {
		return d, bad
	}
	if d.Op == event.Put {
		after := event.Child(value, "after")
		if !after.IsObject() {
			return d, source.Invalid("after", "after is %s: send the row there, because op is %s", source.TypeName(after),
				op.Str)
		}
		if bad = s.checkComplete(after); bad != nil {
			return d, bad
		}
		d.Data = after.Raw
	}
	// Rows of a snapshot have the version of the snapshot, and no resync run. Only the later time
	// of such a row distinguishes it from a live event. So lull writes an equal row again, which is
	// harmless.
	d.Resync = op.Str == "r"
	// The event has the time of the database, and not that of the connector. A restarted connector
	// sends the same change again, and lull must recognise that change as a duplicate.
	d.Time, bad = source.Instant("source/ts_ms", event.Child(value, "source", "ts_ms"), true)
	d.Version = source.Version{Field: strings.TrimPrefix(s.version.Text, "/"), Value: s.version.In(value)}
	switch {
	case bad != nil:
	case s.order != nil:
		d.Version, bad = s.order(op.Str, event.Child(value, "source"))
	case d.Version.Value.Type == gjson.Null && d.Version.Field == "source/lsn" &&
		event.Child(value, "source", "snapshot").Str == "incremental":
		bad = source.VersionInvalid("source/lsn", "source/lsn is missing: a row of an incremental snapshot has none; "+
			"set sources.%s.debezium.sequence to true, with class: int", s.Name)
	}
	if bad == nil {
		bad = d.InRun(b)
	}
	return d, bad
}

// tombstone is the reason to skip a record with a null value. Debezium sends such a record after a
// delete, so that Kafka can remove the document's earlier records.
const tombstone = "tombstone"

// skipReason says why a message of Debezium belongs to no document: the message is about a
// transaction or a table's schema, or is a heartbeat. It returns "" for any other message.
func skipReason(key, value gjson.Result) string {
	m := event.Members(value, "status", "event_count", "tableChanges", "ts_ms")
	switch status := m["status"].Str; {
	case (status == "BEGIN" || status == "END") && m["event_count"].Exists():
		return "transaction metadata"
	case m["tableChanges"].IsArray():
		return "schema change"
	case m["ts_ms"].Type == gjson.Number &&
		(event.Child(key, "serverName").Exists() || event.Child(key, "payload", "serverName").Exists()):
		return "heartbeat"
	}
	return ""
}

// unavailable lists the placeholders that Debezium sends for a large column that did not change,
// because PostgreSQL does not log its value (TOAST). The placeholder is a text, or bytes in base64,
// in hexadecimal or as numbers.
var unavailable = func() (forms []string) {
	const text = "__debezium_unavailable_value"
	numbers := make([]string, len(text))
	for i := range len(text) {
		numbers[i] = strconv.Itoa(int(text[i]))
	}
	for _, coded := range []string{
		text, base64.StdEncoding.EncodeToString([]byte(text)), base64.URLEncoding.EncodeToString([]byte(text)),
		hex.EncodeToString([]byte(text)),
	} {
		forms = append(forms, strconv.Quote(coded))
	}
	return append(forms, "["+strings.Join(numbers, ",")+"]")
}()

// checkComplete refuses a row if the document needs a column that the message leaves out. A put
// without that column would remove the column's value from the sink. If the source fetches its
// documents, lull does not use the row.
func (s *format) checkComplete(after gjson.Result) *event.Invalid {
	lacks := func(v gjson.Result) bool {
		return slices.ContainsFunc(unavailable, func(form string) bool { return strings.Contains(v.Raw, form) })
	}
	if s.Settings.Fetch != nil || !lacks(after) {
		return nil
	}
	for column, v := range after.ForEach {
		if s.Keeps(column.Str) && lacks(v) {
			return source.Invalid("after",
				"the message lacks column %s, because its value is large and did not change (TOAST): "+
					"run ALTER TABLE ... REPLICA IDENTITY FULL, or set sources.%s.fetch, or remove the column from "+
					"sources.%s.projection", event.Quote(column.Str), s.Name, s.Name)
		}
	}
	return nil
}

// docID is the configured key, or the key of the message.
func (s *format) docID(key, value gjson.Result, op event.Operation) (_ event.DocID, bad *event.Invalid) {
	var id string
	field := cmp.Or(s.key.Text, "key")
	switch p := s.key; {
	case len(p.Tokens) > 0:
		if op == event.Delete {
			p = beforePointer(p)
		}
		id, bad = source.Identity(field, p.In(value))
	case key.Type == gjson.Null:
		bad = source.Invalid(field,
			"the message has no key: send it with the value, or set sources.%s.debezium.key", s.Name)
	default:
		id, bad = source.KeyText(field, key)
	}
	if bad != nil {
		return "", bad
	}
	return s.DocID("", field, id)
}

// keyAndValue finds the key and the value of a Kafka message, and removes their schemas.
func keyAndValue(root gjson.Result) (key, value gjson.Result, bad *event.Invalid) {
	value = root
	m := event.Members(root, "op", "key", "value", "payload", "offset")
	if !m["op"].Exists() && (m["value"].Exists() || m["key"].Exists()) {
		of := "value"
		switch {
		case m["value"].Exists() || m["offset"].Exists(): // with offset and no value, the record is a tombstone
		case m["payload"].Exists():
			of = "payload"
		default:
			return key, value, source.Invalid("value",
				"value is missing: with key, send the change event in value, or null for a tombstone")
		}
		if key, bad = parseHalf("key", m["key"]); bad == nil {
			value, bad = parseHalf(of, m[of])
		}
	}
	if payload := event.Child(value, "payload"); payload.Exists() && !event.Child(value, "op").Exists() {
		value = payload
	}
	return key, value, bad
}

// parseHalf reads a key or a value. It may be JSON, a text that contains JSON, or JSON in base64.
func parseHalf(field string, v gjson.Result) (gjson.Result, *event.Invalid) {
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
