// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

// Headers of a request. The first three come from Standard Webhooks.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
	headerFence     = "Lull-Fence" // only in a request with one document
)

// Types of requests.
const (
	typeDocuments = "lull.documents"
	typePing      = "lull.ping"
)

// encode sets the text of an entry: the part of a request that is for this op.
func encode(e *exchange.Entry) *sink.DocumentError {
	meta := e.Meta()
	head, err := json.Marshal(struct {
		Operation  event.Operation  `json:"operation"`
		Collection event.Collection `json:"collection"`
		ID         string           `json:"id"`
		Fence      string           `json:"fence"` // a text, because a fence has more digits than a double
		Key        string           `json:"order_key"`
		Version    string           `json:"version"`
		Indexed    time.Time        `json:"indexed_at"`
	}{
		e.Kind, e.Doc.Collection(), e.Doc.ID(), strconv.FormatInt(int64(e.Fence), 10),
		meta.Key, meta.Version, meta.Indexed,
	})
	if err != nil {
		return &sink.DocumentError{Class: sink.NotUTF8}
	}
	e.Text = head
	if e.Kind == event.Put {
		e.Text = append(append(append(head[:len(head)-1], `,"document":`...), e.Plain...), '}')
	}
	return nil
}

// idOf returns the id of a request. Two requests have the same id only if they have the same
// documents with the same fences.
func idOf(entries []exchange.Entry, at time.Time) string {
	h := sha256.New()
	for _, e := range entries {
		name := fmt.Sprintf("%s@%d", e.Doc, e.Fence)
		fmt.Fprintf(h, "%d:%s", len(name), name)
	}
	if len(entries) == 0 {
		fmt.Fprint(h, at.UnixNano())
	}
	return "lull_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// body returns the text of a request.
func body(kind string, at time.Time, entries []exchange.Entry) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"type":%q,"timestamp":%q,"data":{"documents":[`, kind, at.UTC().Format(time.RFC3339))
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(e.Text)
	}
	b.WriteString("]}}")
	return b.Bytes()
}

// maxAnswer returns how many bytes of an answer are read.
func maxAnswer(documents int) int64 { return 64<<10 + 256*int64(documents) }

// post sends one request.
func (s *Sink) post(ctx context.Context, kind string, entries []exchange.Entry) exchange.Answer {
	at := s.Now()
	id, text := idOf(entries, at), body(kind, at, entries)
	to := exchange.Client{Address: s.URL, Transport: s.transport, Authenticate: func(req *http.Request) error {
		timestamp := strconv.FormatInt(at.Unix(), 10)
		req.Header.Set("Accept", "application/json")
		req.Header.Set("User-Agent", "lull")
		req.Header.Set(headerID, id)
		req.Header.Set(headerTimestamp, timestamp)
		if len(entries) == 1 {
			req.Header.Set(headerFence, strconv.FormatInt(int64(entries[0].Fence), 10))
		}
		if s.Secrets == nil {
			return nil
		}
		secrets, err := s.secrets(ctx)
		if err != nil {
			return fmt.Errorf("sign the request: %w", err)
		}
		req.Header.Set(headerSignature, signatures(secrets, id+"."+timestamp+".", text))
		return nil
	}}
	return to.Do(ctx, http.MethodPost, "", "application/json", text, maxAnswer(len(entries)))
}

var errSecret = errors.New("want one or two secrets, separated by a space, each as whsec_ and base64 of 24 to 64 bytes")

// secrets returns the keys with which a request is signed.
func (s *Sink) secrets(ctx context.Context) ([][]byte, error) {
	text, err := s.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	var keys [][]byte
	for _, field := range strings.Fields(text) {
		coded, ok := strings.CutPrefix(field, "whsec_")
		key, err := base64.StdEncoding.DecodeString(coded)
		if !ok || err != nil || len(key) < 24 || len(key) > 64 {
			return nil, errSecret
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 || len(keys) > 2 {
		return nil, errSecret
	}
	return keys, nil
}

// signatures signs head and text with each secret, and returns the value of the header.
func signatures(secrets [][]byte, head string, text []byte) string {
	var all []string
	for _, key := range secrets {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(head))
		mac.Write(text)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}
