package vertex

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/exchange"
	"github.com/lullhq/lull/sink"
)

// digestPrefix begins the ids that are digests.
const digestPrefix = "lull-"

// plainID is what an id may be as it is: a label of RFC 1034, which may begin with a digit since
// RFC
// 1123. Nobody says that the engine tells capitals from small letters, so there are none.
var plainID = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// documentID is the id of a document in its data store. No two documents have the same.
func documentID(id string) string {
	if plainID.MatchString(id) && !strings.HasPrefix(id, digestPrefix) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return digestPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// mark is what lull writes beside a document. The fence is a text, because the engine may keep
// numbers as doubles.
type mark struct {
	ID      string    `json:"id"`
	Version string    `json:"version"`
	Key     string    `json:"order_key"`
	Fence   string    `json:"fence"`
	Indexed time.Time `json:"indexed_at"`
}

// body is what stands in a request for a document.
type body struct {
	ID      string          `json:"id"`
	Name    string          `json:"name,omitempty"` // of an answer
	Data    *string         `json:"jsonData,omitempty"`
	Struct  json.RawMessage `json:"structData,omitempty"` // of an answer
	Content *content        `json:"content,omitempty"`
}

type content struct {
	MimeType string `json:"mimeType"`
	Bytes    string `json:"rawBytes,omitempty"`
}

// encode is the text of a request, or what is wrong with the document.
func (s *Sink) encode(e exchange.Entry) ([]byte, *sink.DocumentError) {
	plain, m := e.Plain, e.Meta()
	meta, err := json.Marshal(mark{e.Doc.ID(), m.Version, m.Key, strconv.FormatInt(int64(m.Fence), 10), m.Indexed})
	if err != nil {
		return nil, &sink.DocumentError{Class: sink.NotJSON, Field: sink.MetaField}
	}
	b := body{ID: documentID(e.Doc.ID())}
	sealed := `{"` + sink.MetaField + `":` + string(meta)
	if len(plain) > len("{}") {
		sealed += ","
	}
	sealed += string(plain[1:])
	b.Data = &sealed
	if text, ok := textAt(plain, s.Content); ok {
		b.Content = &content{s.MimeType, base64.StdEncoding.EncodeToString([]byte(text))}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return nil, &sink.DocumentError{Class: sink.NotJSON}
	}
	return text, nil
}

// textAt is the text that a JSON pointer leads to; false where there is none.
func textAt(document []byte, pointer string) (text string, ok bool) {
	if pointer == "" {
		return "", false
	}
	at := json.RawMessage(document)
	for _, part := range strings.Split(pointer[1:], "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		var object map[string]json.RawMessage
		var list []json.RawMessage
		if i, err := strconv.Atoi(part); err == nil && json.Unmarshal(at, &list) == nil && i >= 0 && i < len(list) {
			at = list[i]
		} else if json.Unmarshal(at, &object) == nil {
			at = object[part]
		} else {
			return "", false
		}
	}
	return text, json.Unmarshal(at, &text) == nil && len(at) > 0 && at[0] == '"'
}

// opened reads a document as the engine returns it. One that lull did not write has its Doc and
// Document only, and ours is false.
func opened(c event.Collection, b body) (stored sink.Stored, ours bool, err error) {
	text := b.Struct
	if b.Data != nil {
		text = json.RawMessage(*b.Data)
	}
	if len(text) == 0 {
		text = json.RawMessage("{}")
	}
	id := b.ID
	if id == "" {
		id = b.Name[strings.LastIndexByte(b.Name, '/')+1:]
	}
	stored = sink.Stored{Doc: event.DocID(string(c) + "#" + id), Document: text}
	members, err := membersOf(text)
	if err != nil {
		return stored, false, fmt.Errorf("%s: %w", stored.Doc, &sink.DocumentError{Class: sink.NotJSON})
	}
	var m mark
	for i, member := range members {
		if member.name != sink.MetaField {
			continue
		}
		fence, bad := int64(0), json.Unmarshal(member.value, &m)
		if bad == nil {
			fence, bad = strconv.ParseInt(m.Fence, 10, 64)
		}
		if bad != nil || m.ID == "" {
			return stored, true, fmt.Errorf("%s: %w", stored.Doc, &sink.DocumentError{Class: sink.NotJSON, Field: sink.MetaField})
		}
		return sink.Stored{
			Doc: event.DocID(string(c) + "#" + m.ID), Version: m.Version, Key: m.Key, Fence: event.Fence(fence),
			Indexed: m.Indexed.UTC(), Document: join(append(members[:i:i], members[i+1:]...)),
		}, true, nil
	}
	return stored, false, nil
}

// A member is a name and its value, as they stand in an object.
type member struct {
	name  string
	text  []byte // the name, quoted
	value json.RawMessage
}

// membersOf reads the members of an object in their order.
func membersOf(object []byte) (members []member, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, &sink.DocumentError{Class: sink.NotAnObject}
	}
	for d.More() {
		begin := d.InputOffset()
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{text: bytes.TrimLeft(object[begin:d.InputOffset()], ", \t\r\n")}
		m.name, _ = token.(string)
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	return members, nil
}

// join is the object of members.
func join(members []member) []byte {
	b := []byte("{")
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, m.text...), ':'), m.value...)
	}
	return append(b, '}')
}
