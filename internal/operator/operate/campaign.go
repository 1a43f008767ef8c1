package operate

import (
	"context"
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

// campaign answers with a line for each dead letter that is done. If the connection ends, the
// remaining dead letters stay unchanged.
func campaign(f func(context.Context, LetterOrder) (LetterResult, error)) http.HandlerFunc {
	return lines(func(ctx context.Context, o LetterOrder, tell func(update)) update {
		o.Progress = func(l LetterLine) { tell(update{Line: &l}) }
		res, err := f(ctx, o)
		return update{Counts: res.Outcomes, Error: wired(err), End: true}
	})
}

func (c *Client) campaign(ctx context.Context, name string, o LetterOrder) (LetterResult, error) {
	res := LetterResult{Outcomes: map[string]int{}, Lines: []LetterLine{}}
	err := follow(ctx, c, name, o, "what is listed was done", func(u update) (bool, *wireError) {
		if u.Line != nil {
			res.Outcomes[u.Line.Outcome]++
			res.add(*u.Line)
			if o.Progress != nil {
				o.Progress(*u.Line)
			}
		}
		if u.Counts != nil {
			res.Outcomes = u.Counts
		}
		return u.End, u.Error
	})
	return res, err
}

// Redrive sends dead letters again.
func (c *Client) Redrive(ctx context.Context, o LetterOrder) (LetterResult, error) {
	return c.campaign(ctx, "redrive", o)
}

// Drop deletes dead letters for good.
func (c *Client) Drop(ctx context.Context, o LetterOrder) (LetterResult, error) {
	return c.campaign(ctx, "drop", o)
}
