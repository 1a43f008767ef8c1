// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// JSON text is Unicode, so a body that is not UTF-8 would arrive changed. A change can turn a
// message that lull must refuse into a valid document. So such bodies are sent in base64, in a
// separate field.

// wirePublication is the JSON form of a Publication.
type wirePublication struct {
	plainPublication
	Base64 map[int][]byte `json:"base64,omitempty"` // bodies, by the position of the message
}

type plainPublication Publication

// MarshalJSON keeps every body byte for byte.
func (p Publication) MarshalJSON() ([]byte, error) {
	w := wirePublication{plainPublication: plainPublication(p)}
	for i, m := range p.Messages {
		if utf8.ValidString(m.Body) {
			continue
		}
		if w.Base64 == nil {
			w.Base64 = map[int][]byte{}
			w.Messages = append(w.Messages[:0:0], w.Messages...) // do not change the caller's messages
		}
		w.Base64[i], w.Messages[i].Body = []byte(m.Body), ""
	}
	return marshal(w)
}

// UnmarshalJSON puts the bodies back in their places.
func (p *Publication) UnmarshalJSON(b []byte) error {
	var w wirePublication
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	for i, body := range w.Base64 {
		if i < 0 || i >= len(w.Messages) {
			return fmt.Errorf("base64: there is no message %d", i)
		}
		w.Messages[i].Body = string(body)
	}
	*p = Publication(w.plainPublication)
	return nil
}

// wireLetter is the JSON form of a dead letter, on the wire and with -o json.
type wireLetter struct {
	plainLetter
	Base64 []byte `json:"body_base64,omitempty"` // a body that is not UTF-8
}

type plainLetter Letter

// MarshalJSON keeps the body byte for byte.
func (l Letter) MarshalJSON() ([]byte, error) {
	w := wireLetter{plainLetter: plainLetter(l)}
	if !utf8.ValidString(l.Body) {
		w.Base64, w.Body = []byte(l.Body), ""
	}
	return marshal(w)
}

// UnmarshalJSON puts the body back in its place.
func (l *Letter) UnmarshalJSON(b []byte) error {
	var w wireLetter
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	if w.Base64 != nil {
		w.Body = string(w.Base64)
	}
	*l = Letter(w.plainLetter)
	return nil
}

// marshal does not escape HTML, because the encoder that calls it does so if its caller wants that.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}
