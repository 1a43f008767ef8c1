package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// update is one line of the answer to redrive and drop, which may take hours at a low rate. Each
// line is a dead letter that is done; the last one is the result and the error.
type update struct {
	Line   *LetterLine    `json:"line,omitempty"`
	Counts map[string]int `json:"counts,omitempty"`
	Error  *wireError     `json:"error,omitempty"`
	End    bool           `json:"end,omitempty"`
}

// campaign answers line by line. It ends with the connection: the remaining dead letters stay as
// they are.
func campaign(mux *http.ServeMux, name string, f func(context.Context, LetterOrder) (LetterResult, error)) {
	mux.HandleFunc("POST "+prefix+name, func(w http.ResponseWriter, r *http.Request) {
		o, err := read[LetterOrder](w, r)
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		out, enc := http.NewResponseController(w), json.NewEncoder(w)
		o.Progress = func(l LetterLine) {
			_ = enc.Encode(update{Line: &l}) // the client went away: the context ends too
			_ = out.Flush()
		}
		res, err := f(r.Context(), o)
		last := update{Counts: res.Outcomes, End: true}
		if err != nil {
			last.Error = wired(err)
		}
		_ = enc.Encode(last) // the client went away
	})
}

func (c *Client) campaign(ctx context.Context, name string, o LetterOrder) (LetterResult, error) {
	res := LetterResult{Outcomes: map[string]int{}, Lines: []LetterLine{}}
	resp, err := c.post(ctx, name, o)
	if err != nil {
		return res, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	if resp.StatusCode != http.StatusOK {
		return res, c.refused(resp)
	}
	for dec := json.NewDecoder(resp.Body); ; {
		var u update
		if err := dec.Decode(&u); err != nil {
			return res, fmt.Errorf("%s ended in the middle of %s: %w (what is listed was done)", Shown(c.Base), name, err)
		}
		if u.Line != nil {
			res.Outcomes[u.Line.Outcome]++
			res.add(*u.Line)
			if o.Progress != nil {
				o.Progress(*u.Line)
			}
		}
		if !u.End {
			continue
		}
		if u.Counts != nil {
			res.Outcomes = u.Counts
		}
		if u.Error != nil {
			return res, &remoteError{*u.Error}
		}
		return res, nil
	}
}

// Redrive sends dead letters again.
func (c *Client) Redrive(ctx context.Context, o LetterOrder) (LetterResult, error) {
	return c.campaign(ctx, "redrive", o)
}

// Drop deletes dead letters for good.
func (c *Client) Drop(ctx context.Context, o LetterOrder) (LetterResult, error) {
	return c.campaign(ctx, "drop", o)
}
