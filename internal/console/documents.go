package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
)

// maxDocument is how large a document may be to be shown.
const maxDocument = 2 << 20

// documentRoutes are what the view of documents asks.
//
//	GET /console/documents?state=&collection=&contains=&key=&cursor=&limit=   a page, by rows
//	GET /console/document?key=          what explain says
//	GET /console/document/sink?key=     the document as its sink holds it, or null
//	GET /console/document/newest?key=   the newest version that its sink does not have, or null
func (c *console) documentRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+prefix+"documents", c.documents)
	questions(mux, "document", func(ctx context.Context, key shard.DocID) (operate.Explanation, error) {
		return c.API.Explain(ctx, key)
	})
	questions(mux, "document/sink", func(ctx context.Context, key shard.DocID) (operate.Document, error) {
		d, err := c.API.Get(ctx, key)
		return d, tooLarge(err, len(d.Document), key)
	})
	questions(mux, "document/newest", func(ctx context.Context, key shard.DocID) (operate.Unwritten, error) {
		u, err := c.API.Unwritten(ctx, key)
		return u, tooLarge(err, len(u.Document), key)
	})
}

func tooLarge(err error, bytes int, key shard.DocID) error {
	if err != nil || bytes <= maxDocument {
		return err
	}
	return &problem{
		http.StatusRequestEntityTooLarge,
		fmt.Sprintf("the document has %d bytes, too many to show here: use `lull get '%s'`", bytes, inQuotes(key)),
	}
}

// inQuotes is a key between the quotes of a command that people copy into a shell. A sender chose
// its id.
func inQuotes(key shard.DocID) string { return strings.ReplaceAll(string(key), "'", `'\''`) }

// questions answers a question about one document.
func questions[A any](mux *http.ServeMux, path string, ask func(context.Context, shard.DocID) (A, error)) {
	mux.HandleFunc("GET "+prefix+path, func(w http.ResponseWriter, r *http.Request) {
		key, err := keyOf(r.URL.Query())
		if err != nil {
			failed(w, err)
			return
		}
		a, err := ask(r.Context(), key)
		if errors.Is(err, operate.ErrNotFound) {
			answer(w, nil)
			return
		}
		if err != nil {
			failed(w, err)
			return
		}
		answer(w, a)
	})
}

// keyOf reads the key of a document.
func keyOf(q url.Values) (shard.DocID, error) {
	text := q.Get("key")
	key, err := shard.ParseDocID(text)
	switch {
	case err != nil:
		return "", &problem{http.StatusBadRequest, err.Error()}
	case strings.ContainsRune(text, 0):
		return "", &problem{http.StatusBadRequest, "key: no document's id holds the character NUL"}
	}
	return key, nil
}

func (c *console) documents(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	f := operate.DocumentFilter{
		State: operate.State(q.Get("state")), Collection: shard.Collection(q.Get("collection")),
		Contains: q.Get("contains"), Cursor: q.Get("cursor"),
	}
	if q.Get("key") != "" {
		key, err := keyOf(q)
		if err != nil {
			failed(w, err)
			return
		}
		f.Key = key
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			fail(w, http.StatusBadRequest, "limit: want a number from 1 to 1000")
			return
		}
		f.Limit = n
	}
	page, err := c.API.Documents(r.Context(), f)
	if err != nil {
		failed(w, err)
		return
	}
	answer(w, struct {
		operate.DocumentPage
		States []operate.State `json:"states"`
	}{page, operate.ListedStates()})
}
