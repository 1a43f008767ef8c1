// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/sinktest"
	"github.com/lullhq/lull/sink/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
)

// readBack is a sink of the kind webhook. Its documents are read from the receiver's folder.
type readBack struct {
	*webhook.Sink
	store *store
}

func stored(c change) sink.Stored {
	return sink.Stored{
		Doc: event.DocID(c.Collection + "#" + c.ID), Version: c.Version, Key: c.OrderKey, Fence: event.Fence(c.Fence),
		Indexed: c.Indexed, Document: c.Document,
	}
}

func (s readBack) Get(_ context.Context, doc event.DocID) (sink.Stored, bool, error) {
	c, known, err := s.store.get(string(doc.Collection()), doc.ID())
	return stored(c), known && c.Operation == "put", err
}

func (s readBack) All(_ context.Context, f func(sink.Stored) error) error {
	names, err := filepath.Glob(filepath.Join(s.store.folder, "*.json"))
	if err != nil {
		return err
	}
	var all []sink.Stored
	for _, name := range names {
		c, err := read(name)
		if err != nil {
			return err
		}
		if c.Operation == "put" {
			all = append(all, stored(c))
		}
	}
	slices.SortFunc(all, func(a, b sink.Stored) int {
		return cmp.Or(cmp.Compare(a.Doc.Collection(), b.Doc.Collection()), cmp.Compare(a.Doc.ID(), b.Doc.ID()))
	})
	for _, s := range all {
		if err := f(s); err != nil {
			return err
		}
	}
	return nil
}

// open starts a receiver and returns a sink that writes to it.
func open(t *testing.T, accepted, sent string, documents int) sinktest.Sink {
	t.Helper()
	secrets, err := parseSecrets(accepted)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{secrets: secrets, store: &store{folder: t.TempDir()}, now: time.Now}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	s, err := webhook.New(webhook.Options{
		URL: server.URL, Versions: true, BulkDocuments: documents,
		Secrets: func(context.Context) (string, error) { return sent, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return readBack{s, r.store}
}

// The sink and the receiver together pass the test suite of a sink with versions, with one document
// in a request and with many.
func TestTheReceiverKeepsTheContract(t *testing.T) {
	for name, documents := range map[string]int{"one document a request": 1, "many documents a request": 100} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, sinktest.Options{
				New:          func(t *testing.T) sinktest.Sink { return open(t, oldSecret, oldSecret, documents) },
				Capabilities: sink.Capabilities{Versions: true, WriteOnly: true},
			})
		})
	}
}

// While a secret is exchanged, two secrets are valid. One side knows both secrets before the other
// side does.
func TestSecretsAreExchangedWithoutAGap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		accepted, sent string
		ok             bool
	}{
		{oldSecret, oldSecret, true},
		{oldSecret, newSecret + " " + oldSecret, true},
		{newSecret, newSecret + " " + oldSecret, true},
		{newSecret + " " + oldSecret, oldSecret, true},
		{newSecret, newSecret, true},
		{newSecret, oldSecret, false},
		{newSecret, "whsec_short", false},
	} {
		s := open(t, tt.accepted, tt.sent, 1)
		op := sink.Op{Doc: "content#a", Kind: event.Put, Fence: 1, Document: []byte(`{"n":1}`)}
		o := s.Write(t.Context(), []sink.Op{op})[0]
		if ok := o.Kind == sink.Applied; ok != tt.ok || !ok && o.Kind != sink.Configuration {
			t.Errorf("accepted %q, sent %q: got %+v, want applied %t", tt.accepted, tt.sent, o, tt.ok)
		}
		if err := s.Ping(t.Context()); (err == nil) != tt.ok {
			t.Errorf("ping: accepted %q, sent %q: got %v", tt.accepted, tt.sent, err)
		}
	}
}

// The receiver refuses a request unless the signature is valid for exactly this request and this
// time.
func TestRequestsThatLullDidNotSend(t *testing.T) {
	t.Parallel()
	keys, err := parseSecrets(oldSecret)
	if err != nil {
		t.Fatal(err)
	}
	const (
		body = `{"type":"lull.documents","data":{"documents":[{"operation":"delete","collection":"c","id":"a","fence":"1"}]}}`
		// The signature was made with openssl: printf '%s' "$ID.$STAMP.$BODY" | openssl dgst
		// -sha256 -mac HMAC -macopt hexkey:$KEY -binary | base64
		signature = "v1,7MfgL5Py0reiw9T6t8inHyqkONmzX4NSuZagaJFlGjo="
	)
	now := time.Unix(1_795_336_827, 0)
	for _, tt := range []struct {
		name, id, stamp, signature, body string
		late                             time.Duration
		want                             int
	}{
		{"as it was sent", "lull_1", "1795336827", signature, body, 0, 200},
		{"another signature is first", "lull_1", "1795336827", "v1a,xyz v1,AAAA " + signature, body, 0, 200},
		{"another id", "lull_2", "1795336827", signature, body, 0, 401},
		{"another time", "lull_1", "1795336828", signature, body, 0, 401},
		{"another body", "lull_1", "1795336827", signature, strings.Replace(body, `"a"`, `"b"`, 1), 0, 401},
		{"too late", "lull_1", "1795336827", signature, body, 6 * time.Minute, 401},
		{"too early", "lull_1", "1795336827", signature, body, -6 * time.Minute, 401},
		{"no signature", "lull_1", "1795336827", "", body, 0, 401},
		{"no id", "", "1795336827", signature, body, 0, 401},
		{"no time", "lull_1", "", signature, body, 0, 401},
	} {
		at := now.Add(tt.late)
		r := &receiver{secrets: keys, store: &store{folder: t.TempDir()}, now: func() time.Time { return at }}
		req := httptest.NewRequest("POST", "/", strings.NewReader(tt.body))
		req.Header.Set("webhook-id", tt.id)
		req.Header.Set("webhook-timestamp", tt.stamp)
		req.Header.Set("webhook-signature", tt.signature)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != tt.want {
			t.Errorf("%s: got %d %s, want %d", tt.name, w.Code, w.Body, tt.want)
		}
	}
}
