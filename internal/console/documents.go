// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/searchable"
)

// maxDocument is the size of the largest document that is shown, in bytes.
const maxDocument = 2 << 20

// documentRoutes returns the requests of the view of documents.
//
//	GET /console/documents?state=&collection=&contains=&key=&cursor=&limit=   one page of the list
//	GET /console/document?key=          the explanation of a document, as in `lull explain`
//	GET /console/document/sink?key=     the document in its sink, or null
//	GET /console/document/searchable?key=   whether a search finds the committed version, in each sink
//	GET /console/document/newest?key=   the newest version that the sink does not have, or null
func (c *console) documentRoutes() routes {
	return routes{
		"GET /console/documents": answered(reader, c.documents),
		"GET /console/document": answerAbout(func(ctx context.Context, key shard.DocID) (any, error) {
			return c.API.Explain(ctx, key)
		}),
		"GET /console/document/sink": answerAbout(func(ctx context.Context, key shard.DocID) (any, error) {
			d, err := c.API.Get(ctx, key)
			return d, tooLarge(err, len(d.Document), key)
		}),
		"GET /console/document/searchable": answerAbout(func(ctx context.Context, key shard.DocID) (any, error) {
			return c.API.Searchable(ctx, searchable.Question{Key: string(key)})
		}),
		"GET /console/document/newest": answerAbout(func(ctx context.Context, key shard.DocID) (any, error) {
			u, err := c.API.Unwritten(ctx, key)
			return u, tooLarge(err, len(u.Document), key)
		}),
	}
}

func tooLarge(err error, bytes int, key shard.DocID) error {
	if err != nil || bytes <= maxDocument {
		return err
	}
	return Problemf(http.StatusRequestEntityTooLarge,
		"the document has %d bytes, too many to show here: use `lull get '%s'`", bytes, inQuotes(key))
}

// inQuotes escapes a key for a shell command with single quotes that users copy. The escaping is
// needed because a sender chose the id in the key.
func inQuotes(key shard.DocID) string { return strings.ReplaceAll(string(key), "'", `'\''`) }

// answerAbout answers a request about one document. The answer is null if the document does not
// exist.
func answerAbout(ask func(context.Context, shard.DocID) (any, error)) http.HandlerFunc {
	return answered(reader, func(r *http.Request) (any, error) {
		key, err := keyOf(r.FormValue("key"))
		if err != nil {
			return nil, err
		}
		a, err := ask(r.Context(), key)
		if errors.Is(err, operate.ErrNotFound) {
			return nil, nil
		}
		return a, err
	})
}

// keyOf reads the key of a document.
func keyOf(text string) (shard.DocID, error) {
	key, err := shard.ParseDocID(text)
	switch {
	case err != nil:
		return "", badf("%v", err)
	case strings.ContainsRune(text, 0):
		return "", badf("key: no document's id holds the character NUL")
	}
	return key, nil
}

func (c *console) documents(r *http.Request) (any, error) {
	limit, err := limitOf(r, 1000)
	f := operate.DocumentFilter{
		State: operate.State(r.FormValue("state")), Collection: shard.Collection(r.FormValue("collection")),
		Contains: r.FormValue("contains"), Cursor: r.FormValue("cursor"), Limit: limit,
	}
	if key := r.FormValue("key"); err == nil && key != "" {
		f.Key, err = keyOf(key)
	}
	if err != nil {
		return nil, err
	}
	page, err := c.API.Documents(r.Context(), f)
	return struct {
		operate.DocumentPage
		States []operate.State `json:"states"`
	}{page, operate.ListedStates()}, err
}
