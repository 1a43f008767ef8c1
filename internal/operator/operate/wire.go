package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
)

// A question is a POST to <base>/operate/<name> with a JSON object. The answer is JSON, too.
const prefix = "/operate/"

type byKey struct {
	Key shard.DocID `json:"key"`
}

type byID struct {
	ID string `json:"id"`
}

type wireError struct {
	Error    string `json:"error"`
	NotFound bool   `json:"not_found,omitempty"`
	Input    bool   `json:"input,omitempty"`
	// WriteOnly says that a sink cannot be read back, from any machine.
	WriteOnly bool `json:"write_only,omitempty"`
}

// maxRequest bounds what Handler reads of a request.
const maxRequest = 64 << 20

// Handler answers the questions of a Client from an API. There is no authentication: serve it on
// 127.0.0.1 only.
func Handler(api API) http.Handler {
	mux := http.NewServeMux()
	for name, handler := range map[string]http.HandlerFunc{
		"publish":       route(api.Publish),
		"forms":         route(bare(api.Forms)),
		"compose":       route(api.Compose),
		"get":           route(keyed(api.Get)),
		"search":        route(api.Search),
		"status":        route(bare(api.Status)),
		"origins":       route(bare(api.Origins)),
		"explain":       route(keyed(api.Explain)),
		"documents":     route(api.Documents),
		"in_group":      route(api.InGroup),
		"unwritten":     route(keyed(api.Unwritten)),
		"letters":       route(api.Letters),
		"letter-page":   route(api.LetterPage),
		"letter-groups": route(api.LetterGroups),
		"letter":        route(func(ctx context.Context, q byID) (Letter, error) { return api.Letter(ctx, q.ID) }),
		"redrive":       route(api.Redrive),
		"drop":          route(api.Drop),
		"cancel":        route(api.Cancel),
		"reconcile":     route(api.Reconcile),
		"archived":      route(api.Archived),
		"replay":        route(api.Replay),
		"backfill":      route(api.Backfill),
		"check":         route(api.Check),
		"remove":        route(api.Remove),
		"unsearchable":  route(api.Unsearchable),
		"forget":        route(api.Forget),
		"rebuild":       route(api.Rebuild),
		"rebuilds":      route(bare(api.Rebuilds)),
		"reset":         route(api.Reset),
		"pause":         route(api.Pause),
		"resume":        route(api.Resume),
		"object":        route(api.Object),
		"take-job":      route(api.TakeJob),
		"save-job":      route(done(api.SaveJob)),
		"end-job":       route(done(api.EndJob)),
		"jobs":          route(bare(api.Jobs)),
		"stop-job":      route(done(api.StopJob)),
		"drop-job":      route(done(api.DropJob)),
		"rescue": route(func(ctx context.Context, q byID) (byID, error) {
			id, err := api.Rescue(ctx, flight.ID(q.ID))
			return byID{string(id)}, err
		}),
	} {
		mux.HandleFunc("POST "+prefix+name, handler)
	}
	return mux
}

// bare adapts a question without parameters.
func bare[A any](f func(context.Context) (A, error)) func(context.Context, struct{}) (A, error) {
	return func(ctx context.Context, _ struct{}) (A, error) { return f(ctx) }
}

// keyed adapts a question about one document.
func keyed[A any](f func(context.Context, shard.DocID) (A, error)) func(context.Context, byKey) (A, error) {
	return func(ctx context.Context, q byKey) (A, error) { return f(ctx, q.Key) }
}

// route answers a question with one JSON object.
func route[Q, A any](f func(context.Context, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var a A
		q, err := read[Q](w, r)
		if err == nil {
			a, err = f(r.Context(), q)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a) // the client went away
	}
}

// read decodes a question.
func read[Q any](w http.ResponseWriter, r *http.Request) (q Q, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		return q, input(err)
	}
	return q, nil
}

func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status(err))
	_ = json.NewEncoder(w).Encode(wired(err)) // the client went away
}

// wired converts an error for the wire; nil stays nil.
func wired(err error) *wireError {
	if err == nil {
		return nil
	}
	return &wireError{err.Error(), errors.Is(err, ErrNotFound), errors.Is(err, ErrInput), errors.Is(err, ErrWriteOnly)}
}

func status(err error) int {
	switch {
	case errors.Is(err, ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, ErrInput):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// Client asks a Handler in another process.
type Client struct {
	Base string // http://127.0.0.1:7070
	HTTP *http.Client
}

var _ API = (*Client)(nil)

// Shown returns an address without its password, for people. A text that is not an address may
// contain a password, too, before its last @.
func Shown(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Redacted()
	}
	if at := strings.LastIndex(address, "@"); at >= 0 {
		return "xxxxx" + address[at:]
	}
	return address
}

// post sends a question and returns the body of the answer. A refusal is an error.
func (c *Client) post(ctx context.Context, name string, q any) (io.ReadCloser, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", name, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.Base, "/")+prefix+name,
		bytes.NewReader(body))
	if err != nil {
		return nil, inputf("%s is not an address", Shown(c.Base)) // the error would quote the password
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.HTTP.Do(req)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask %s: %w (is `lull dev` running there?)", Shown(c.Base), err)
	case resp.StatusCode == http.StatusOK:
		return resp.Body, nil
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	var e wireError
	if err := json.NewDecoder(resp.Body).Decode(&e); err != nil || e.Error == "" {
		return nil, fmt.Errorf("%s answers %s: it is not a `lull dev`, or one of another version", Shown(c.Base),
			resp.Status)
	}
	return nil, e.remote()
}

func ask[Q, A any](ctx context.Context, c *Client, name string, q Q) (a A, err error) {
	body, err := c.post(ctx, name, q)
	if err != nil {
		return a, err
	}
	defer func() { _ = body.Close() }() // read to its end
	if err := json.NewDecoder(body).Decode(&a); err != nil {
		return a, fmt.Errorf("read the answer of %s: %w", Shown(c.Base), err)
	}
	return a, nil
}

// remote converts an error from the wire for the caller; nil stays nil.
func (e *wireError) remote() error {
	if e == nil {
		return nil
	}
	return &remoteError{*e}
}

// remoteError keeps the kind of an error across the wire.
type remoteError struct{ wireError }

// Error returns one line without control characters, because the text may quote a sender.
func (e *remoteError) Error() string { return terminal.Line(e.wireError.Error) }

func (e *remoteError) Is(target error) bool {
	return target == ErrNotFound && e.NotFound || target == ErrInput && e.Input || target == ErrWriteOnly && e.WriteOnly
}

// Publish sends messages.
func (c *Client) Publish(ctx context.Context, p Publication) (Published, error) {
	return ask[Publication, Published](ctx, c, "publish", p)
}

// Origins lists the hosts that documents are fetched from.
func (c *Client) Origins(ctx context.Context) ([]Origin, error) {
	return ask[struct{}, []Origin](ctx, c, "origins", struct{}{})
}

// Forms lists the ways to write a message.
func (c *Client) Forms(ctx context.Context) (Forms, error) {
	return ask[struct{}, Forms](ctx, c, "forms", struct{}{})
}

// Compose writes a message.
func (c *Client) Compose(ctx context.Context, o Composition) (Composed, error) {
	return ask[Composition, Composed](ctx, c, "compose", o)
}

// Get reads a document back.
func (c *Client) Get(ctx context.Context, key shard.DocID) (Document, error) {
	return ask[byKey, Document](ctx, c, "get", byKey{key})
}

// Search finds documents.
func (c *Client) Search(ctx context.Context, q Search) (Found, error) {
	return ask[Search, Found](ctx, c, "search", q)
}

// Status returns the state of the stack.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[struct{}, Status](ctx, c, "status", struct{}{})
}

// Explain says why a document is as fresh as it is.
func (c *Client) Explain(ctx context.Context, key shard.DocID) (Explanation, error) {
	return ask[byKey, Explanation](ctx, c, "explain", byKey{key})
}

// Documents lists documents page by page.
func (c *Client) Documents(ctx context.Context, f DocumentFilter) (DocumentPage, error) {
	return ask[DocumentFilter, DocumentPage](ctx, c, "documents", f)
}

// Unwritten finds the newest version that is not in the sink.
func (c *Client) Unwritten(ctx context.Context, key shard.DocID) (Unwritten, error) {
	return ask[byKey, Unwritten](ctx, c, "unwritten", byKey{key})
}

// Letters lists dead letters.
func (c *Client) Letters(ctx context.Context, f LetterFilter) ([]Letter, error) {
	return ask[LetterFilter, []Letter](ctx, c, "letters", f)
}

// LetterPage lists dead letters page by page.
func (c *Client) LetterPage(ctx context.Context, q LetterQuery) (LetterPage, error) {
	return ask[LetterQuery, LetterPage](ctx, c, "letter-page", q)
}

// LetterGroups counts dead letters by reason.
func (c *Client) LetterGroups(ctx context.Context, f LetterFilter) (LetterGroups, error) {
	return ask[LetterFilter, LetterGroups](ctx, c, "letter-groups", f)
}

// Letter shows one dead letter with its body.
func (c *Client) Letter(ctx context.Context, id string) (Letter, error) {
	return ask[byID, Letter](ctx, c, "letter", byID{id})
}

// Cancel makes the pending version of a document, or its next scheduled event, a dead letter.
func (c *Client) Cancel(ctx context.Context, q Cancellation) (Letter, error) {
	return ask[Cancellation, Letter](ctx, c, "cancel", q)
}

// Reset lets a document accept older versions again.
func (c *Client) Reset(ctx context.Context, o ResetOrder) (Resetted, error) {
	return ask[ResetOrder, Resetted](ctx, c, "reset", o)
}

// Pause stops all claims for sinks.
func (c *Client) Pause(ctx context.Context, o PauseOrder) (PauseResult, error) {
	return ask[PauseOrder, PauseResult](ctx, c, "pause", o)
}

// Resume ends pauses.
func (c *Client) Resume(ctx context.Context, o PauseOrder) (PauseResult, error) {
	return ask[PauseOrder, PauseResult](ctx, c, "resume", o)
}

// Rescue starts a flight from the manifest of a stuck one.
func (c *Client) Rescue(ctx context.Context, id flight.ID) (flight.ID, error) {
	a, err := ask[byID, byID](ctx, c, "rescue", byID{string(id)})
	return flight.ID(a.ID), err
}

// Object says how far an object was read, or aborts that.
func (c *Client) Object(ctx context.Context, o ObjectOrder) (ObjectResult, error) {
	return ask[ObjectOrder, ObjectResult](ctx, c, "object", o)
}
