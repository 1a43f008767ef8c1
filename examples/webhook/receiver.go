// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxRequest is the largest request that is read, in bytes. lull sends at most bulkBytes, or
	// one document.
	maxRequest = 32 << 20
	// tolerance is how much the time of a request may differ from the receiver's clock, so that an
	// old request cannot be sent again.
	tolerance = 5 * time.Minute
)

// verify checks the signature of a request, as standardwebhooks.com describes it. While a secret is
// exchanged, a request has two signatures, and one valid signature is enough.
func verify(secrets [][]byte, h http.Header, body []byte, now time.Time) error {
	id, stamp := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || id == "" {
		return errors.New("webhook-id or webhook-timestamp is missing")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return errors.New("webhook-timestamp is too old, or too new")
	}
	for _, key := range secrets {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		for _, signature := range strings.Fields(h.Get("Webhook-Signature")) {
			if hmac.Equal([]byte(signature), []byte(want)) {
				return nil
			}
		}
	}
	return errors.New("no signature is valid")
}

// parseSecrets reads secrets of the form whsec_BASE64, separated by white space.
func parseSecrets(text string) (keys [][]byte, err error) {
	for _, s := range strings.Fields(text) {
		coded, ok := strings.CutPrefix(s, "whsec_")
		key, err := base64.StdEncoding.DecodeString(coded)
		if !ok || err != nil || len(key) < 24 {
			return nil, errors.New("a secret is whsec_ and base64 of 24 bytes or more")
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// change is one document of a request, and also the content of its file. A change without a
// document is a delete. The file of a delete is kept, because an older request must not restore the
// document.
type change struct {
	Operation  string          `json:"operation"`
	Collection string          `json:"collection"`
	ID         string          `json:"id"`
	Fence      int64           `json:"fence,string"`
	OrderKey   string          `json:"order_key"`
	Version    string          `json:"version"`
	Indexed    time.Time       `json:"indexed_at"`
	Document   json.RawMessage `json:"document,omitempty"`
}

// store keeps documents as files in a folder.
type store struct {
	folder string
	mu     sync.Mutex
}

// errOlder says that the store has a newer change of the document.
var errOlder = errors.New("older than what is here")

// path returns the path of a document's file. An id may contain any character, so the name of the
// file is a digest.
func (s *store) path(collection, id string) string {
	sum := sha256.Sum256([]byte(collection + "\x00" + id))
	return filepath.Join(s.folder, hex.EncodeToString(sum[:])+".json")
}

// get returns the last change of a document. It returns false if the store has none. The last
// change may be a delete.
func (s *store) get(collection, id string) (c change, ok bool, err error) {
	c, err = read(s.path(collection, id))
	if errors.Is(err, os.ErrNotExist) {
		return c, false, nil
	}
	return c, err == nil, err
}

func read(path string) (c change, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	return c, err
}

// apply stores a change, unless the stored change has a greater fence. An equal fence means that
// the same write was sent again.
func (s *store) apply(c change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known, err := s.get(c.Collection, c.ID)
	if err != nil {
		return err
	}
	if known && was.Fence > c.Fence {
		return errOlder
	}
	text, err := encode(c)
	if err != nil {
		return err
	}
	path := s.path(c.Collection, c.ID)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path) // a rename never leaves a file that is only partly written
}

// encode returns a change as JSON, without changing characters of the document.
func encode(c change) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(c)
	return []byte(b.String()), err
}

// receiver is the HTTP handler of the webhook.
type receiver struct {
	secrets [][]byte // if empty, requests need no signature
	store   *store
	now     func() time.Time
}

// ServeHTTP handles the requests of lull. It also shows a document at /documents/COLLECTION/ID.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		r.show(w, req)
		return
	}
	if req.Method != http.MethodPost {
		http.Error(w, "want POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxRequest))
	if err != nil {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	// The signature is checked first, so that the content of an unsigned request is never decoded.
	if len(r.secrets) > 0 {
		if err := verify(r.secrets, req.Header, body, r.now()); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
	}
	var message struct {
		Data struct {
			Documents []change `json:"documents"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		http.Error(w, "not a message of lull's", http.StatusBadRequest)
		return
	}
	// The answer has one result for each document. If all changes were applied, an empty answer
	// would also be valid.
	type result struct {
		Status int `json:"status"`
	}
	results := []result{}
	for _, c := range message.Data.Documents {
		results = append(results, result{r.status(c)})
	}
	w.Header().Set("Content-Type", "application/json")
	if len(results) == 1 && results[0].Status != http.StatusOK {
		w.WriteHeader(results[0].Status)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"results": results}) // fails if the client is gone
}

// status applies a change and returns the HTTP status of the result.
func (r *receiver) status(c change) int {
	if c.Operation != "delete" && (c.Operation != "put" || len(c.Document) == 0) {
		return http.StatusUnprocessableEntity
	}
	switch err := r.store.apply(c); {
	case errors.Is(err, errOlder):
		return http.StatusConflict
	case err != nil:
		fmt.Fprintln(os.Stderr, "webhook:", err)
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

func (r *receiver) show(w http.ResponseWriter, req *http.Request) {
	collection, id, ok := strings.Cut(strings.TrimPrefix(req.URL.Path, "/documents/"), "/")
	c, known, err := r.store.get(collection, id)
	switch {
	case err != nil:
		http.Error(w, "cannot be read", http.StatusInternalServerError)
	case !ok || !known || c.Operation != "put":
		http.Error(w, "not found", http.StatusNotFound)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(c.Document, '\n')) // fails if the client is gone
	}
}
