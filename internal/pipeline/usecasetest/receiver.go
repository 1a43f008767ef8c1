// SPDX-License-Identifier: Apache-2.0

package usecasetest

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"sync"
)

// Receiver is the HTTP server behind a sink of the kind webhook. It compares fences, and keeps
// documents by their keys. It verifies no signature. A Receiver is safe for concurrent use.
type Receiver struct {
	mu        sync.Mutex
	fences    map[string]int64
	documents map[string]string
}

// NewReceiver returns a receiver without documents.
func NewReceiver() *Receiver {
	return &Receiver{fences: map[string]int64{}, documents: map[string]string{}}
}

// Documents returns the documents that the receiver has, by key.
func (r *Receiver) Documents() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.documents)
}

// ServeHTTP accepts the documents of a request in their order. It stops at a document whose fence
// is older than the stored fence.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var body struct {
		Data struct {
			Documents []struct {
				Operation, Collection, ID, Fence string
				Document                         json.RawMessage
			}
		}
	}
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range body.Data.Documents {
		key := d.Collection + "#" + d.ID
		fence, err := strconv.ParseInt(d.Fence, 10, 64)
		switch {
		case err != nil:
			http.Error(w, "fence", http.StatusBadRequest)
			return
		case fence < r.fences[key]:
			http.Error(w, "newer", http.StatusConflict)
			return
		case d.Operation == "put":
			r.documents[key] = string(d.Document)
		default:
			delete(r.documents, key)
		}
		r.fences[key] = fence
	}
}
