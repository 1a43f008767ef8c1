// SPDX-License-Identifier: Apache-2.0

package vertex

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// digestPrefix is the prefix of ids that are digests.
const digestPrefix = "lull-"

// plainID matches an id that is used unchanged: a label of RFC 1034, which may begin with a digit
// since RFC 1123. plainID allows no capital letters, because the engine does not document whether
// case matters.
var plainID = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// documentID returns the id of a document in its data store. Different documents have different
// ids.
func documentID(id string) string {
	if plainID.MatchString(id) && !strings.HasPrefix(id, digestPrefix) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return digestPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// mark is the metadata that lull adds to a document. The fence is a text, because the engine may
// store numbers as doubles.
type mark struct {
	ID      string      `json:"id"`
	Version string      `json:"version"`
	Key     string      `json:"order_key"`
	Fence   event.Fence `json:"fence,string"`
	Indexed time.Time   `json:"indexed_at"`
}

// body is a document, in the form in which requests and answers contain it.
type body struct {
	ID      string          `json:"id"`
	Name    string          `json:"name,omitempty"` // only in an answer
	Data    *string         `json:"jsonData,omitempty"`
	Struct  json.RawMessage `json:"structData,omitempty"` // only in an answer
	Content *content        `json:"content,omitempty"`
}

type content struct {
	MimeType string `json:"mimeType"`
	Bytes    string `json:"rawBytes,omitempty"`
}

// encode returns the text of a request, or an error that says why the document is rejected.
func (s *Sink) encode(e exchange.Entry) ([]byte, *sink.DocumentError) {
	m := e.Meta()
	meta, err := json.Marshal(mark{e.Doc.ID(), m.Version, m.Key, m.Fence, m.Indexed})
	if err != nil {
		return nil, &sink.DocumentError{Class: sink.NotJSON, Field: sink.MetaField}
	}
	sealed := string(sink.Attach(nil, e.Plain, meta))
	b := body{ID: documentID(e.Doc.ID()), Data: &sealed}
	if text, ok := textAt(e.Plain, s.Content); ok {
		b.Content = &content{s.MimeType, base64.StdEncoding.EncodeToString([]byte(text))}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return nil, &sink.DocumentError{Class: sink.NotJSON}
	}
	return text, nil
}

// textAt returns the text at a JSON pointer, or false if there is none.
func textAt(document []byte, pointer string) (text string, ok bool) {
	if pointer == "" {
		return "", false
	}
	at := gjson.ParseBytes(document)
	for name := range strings.SplitSeq(pointer[1:], "/") {
		at = event.Child(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	}
	return at.Str, at.Type == gjson.String
}

// opened converts a document of the engine into a Stored. If lull did not write the document, ours
// is false, and stored has only Doc and Document.
func opened(c event.Collection, b body) (stored sink.Stored, ours bool, err error) {
	text := []byte(cmp.Or(string(b.Struct), "{}"))
	if b.Data != nil && *b.Data != "" {
		text = []byte(*b.Data)
	}
	id := cmp.Or(b.ID, b.Name[strings.LastIndexByte(b.Name, '/')+1:])
	stored = sink.Stored{Doc: event.DocID(string(c) + "#" + id), Document: text}
	meta, plain, err := sink.Detach(text)
	if err != nil {
		return stored, false, fmt.Errorf("%s: %w", stored.Doc, err)
	}
	if meta == nil {
		return stored, false, nil
	}
	var m mark
	if json.Unmarshal(meta, &m) != nil || m.ID == "" || m.Fence == 0 { // a fence is a time
		return stored, true, fmt.Errorf("%s: %w", stored.Doc, &sink.DocumentError{Class: sink.NotJSON, Field: sink.MetaField})
	}
	return sink.Stored{
		Doc: event.DocID(string(c) + "#" + m.ID), Version: m.Version, Key: m.Key, Fence: m.Fence,
		Indexed: m.Indexed.UTC(), Document: plain,
	}, true, nil
}
