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
	// maxRequest bounds what is read of a request. lull sends bulkBytes at most, or one document.
	maxRequest = 32 << 20
	// tolerance is how far a request's time may be from ours: an old request cannot be played back.
	tolerance = 5 * time.Minute
)

// verify checks the signature of a request, as standardwebhooks.com describes it. One valid
// signature is enough: while a secret is exchanged there are two.
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

// change is one document of a request, and what a folder keeps of it. One without a document is a
// delete, which is kept too: without it an older request would bring the document back.
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

// errOlder says that the store has something newer.
var errOlder = errors.New("older than what is here")

// path names the file of a document. Ids may hold anything, so the name is a digest.
func (s *store) path(collection, id string) string {
	sum := sha256.Sum256([]byte(collection + "\x00" + id))
	return filepath.Join(s.folder, hex.EncodeToString(sum[:])+".json")
}

// get returns what is known of a document, false for nothing. A delete is known.
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

// apply stores a change unless what is there has a greater fence. An equal fence is the same write
// once more.
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
	return os.Rename(path+".new", path) // a file is there whole, or not at all
}

// encode is JSON that leaves the document as it came.
func encode(c change) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(c)
	return []byte(b.String()), err
}

// receiver is the HTTP side.
type receiver struct {
	secrets [][]byte // none accepts requests without a signature
	store   *store
	now     func() time.Time
}

// ServeHTTP takes requests of lull's, and shows a document at /documents/COLLECTION/ID.
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
	// The signature comes first: nothing of an unsigned request is looked at.
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
	// One result for each document. Where all went well an empty answer would do.
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
	_ = json.NewEncoder(w).Encode(map[string]any{"results": results}) // the client has gone
}

// status applies a change and says what became of it.
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
		_, _ = w.Write(append(c.Document, '\n')) // the client has gone
	}
}
