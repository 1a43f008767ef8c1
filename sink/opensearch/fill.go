// SPDX-License-Identifier: Apache-2.0

package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/internal/exchange"
)

const (
	// fillSize is how many documents the engine copies in one batch.
	fillSize = 1000
	// fillLook is how often Fill asks the engine for the state of a copy.
	fillLook = time.Second
)

// task is the engine's description of a running copy.
type task struct {
	Node        string `json:"node"`
	ID          int64  `json:"id"`
	Description string `json:"description"`
	Parent      string `json:"parent_task_id"`
}

func (t task) name() string { return fmt.Sprintf("%s:%d", t.Node, t.ID) }

// runningCopies returns the names of the running copies into an index.
func (s *Sink) runningCopies(ctx context.Context, into string) (names []string, err error) {
	var answer struct {
		Tasks []task `json:"tasks"`
	}
	err = s.slow(ctx, http.MethodGet, "/_tasks?actions=*data/write/reindex&detailed=true&group_by=none", nil, &answer)
	if err != nil {
		return nil, fmt.Errorf("list the engine's tasks: %w", err)
	}
	for _, t := range answer.Tasks {
		if t.Parent == "" && strings.Contains(t.Description, "to ["+into+"]") {
			names = append(names, t.name())
		}
	}
	return names, nil
}

// Fill lets the engine copy documents by _reindex. The copy keeps versions, and does not replace
// newer documents in the new index.
func (s *Sink) Fill(ctx context.Context, f sink.Fill) (sink.Filled, error) {
	going, err := s.runningCopies(ctx, f.Into)
	if errors.Is(err, sink.ErrDenied) {
		err = fmt.Errorf("%w: %w", sink.ErrNoCopy, err)
	}
	if err != nil {
		return sink.Filled{}, err
	}
	name := f.Task
	switch {
	case len(going) > 0:
		name = going[0]
	case name != "":
		// the copy ended while no program watched it
		if done, known, err := s.copyResult(ctx, name); known || err != nil {
			return done, err
		}
		fallthrough
	default:
		if name, err = s.startFill(ctx, f); err != nil {
			return sink.Filled{}, err
		}
	}
	if f.Started != nil {
		if err := f.Started(name); err != nil {
			return sink.Filled{}, err
		}
	}
	tick := time.NewTicker(fillLook)
	defer tick.Stop()
	for {
		done, known, err := s.copyResult(ctx, name)
		if known || err != nil {
			return done, err
		}
		if going, err = s.runningCopies(ctx, f.Into); err != nil {
			return sink.Filled{}, err
		}
		if !slices.Contains(going, name) {
			if done, known, err = s.copyResult(ctx, name); known || err != nil {
				return done, err
			}
			return sink.Filled{}, fmt.Errorf(
				"the engine no longer has its copy task (was it restarted?): resume, and the copy starts from the beginning",
			)
		}
		var count struct {
			Count int64 `json:"count"`
		}
		if f.Progress != nil && s.slow(ctx, http.MethodGet, "/"+pathOf(f.Into)+"/_count", nil, &count) == nil {
			f.Progress(count.Count)
		}
		select {
		case <-ctx.Done():
			return sink.Filled{}, ctx.Err()
		case <-tick.C:
		}
	}
}

func (s *Sink) startFill(ctx context.Context, f sink.Fill) (string, error) {
	path := "/_reindex?wait_for_completion=false&slices=auto"
	if f.Rate > 0 {
		path += fmt.Sprintf("&requests_per_second=%g", f.Rate)
	}
	var answer struct {
		Task string `json:"task"`
	}
	err := s.slow(ctx, http.MethodPost, path, object{
		"conflicts": "proceed", "source": object{"index": f.From, "size": fillSize},
		"dest": object{"index": f.Into, "version_type": "external"},
	}, &answer)
	var refused *Error
	if errors.As(err, &refused) && (refused.Status == http.StatusBadRequest && refused.Class == "" ||
		refused.Status == http.StatusMethodNotAllowed || refused.Status == http.StatusForbidden) {
		return "", fmt.Errorf("%w: %w", sink.ErrNoCopy, err)
	}
	if err == nil && answer.Task == "" {
		err = s.client.Odd()
	}
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", f.From, err)
	}
	return answer.Task, nil
}

// copyResult returns the result of a copy. known is false while the copy is running, and if the
// engine no longer knows the copy.
func (s *Sink) copyResult(ctx context.Context, name string) (done sink.Filled, known bool, err error) {
	var answer struct {
		Completed bool   `json:"completed"`
		Error     *fault `json:"error"`
		Response  struct {
			Failures []struct {
				ID     string `json:"id"`
				Status int    `json:"status"`
				Cause  fault  `json:"cause"`
				Reason fault  `json:"reason"` // set if a search failed
			} `json:"failures"`
			Canceled string `json:"canceled"`
		} `json:"response"`
	}
	err = s.slow(ctx, http.MethodGet, "/_tasks/"+url.PathEscape(name), nil, &answer)
	switch {
	case exchange.Status(err) == http.StatusNotFound:
		return done, false, nil
	case err != nil:
		return done, false, fmt.Errorf("read the state of the copy: %w", err)
	case !answer.Completed:
		return done, false, nil
	case answer.Error != nil:
		return done, true, fmt.Errorf("the engine's copy failed: %s", answer.Error.reason())
	case answer.Response.Canceled != "":
		return done, true, errors.New("the engine's copy was canceled: resume, and the copy starts from the beginning")
	}
	for _, f := range answer.Response.Failures {
		o := s.itemOutcome(shard.Put, item{Status: f.Status, Error: raw(f.Cause)}, 0)
		if o.Kind != sink.Rejected && o.Kind != sink.Refused {
			if f.Cause.Type == "" {
				f.Cause = f.Reason
			}
			return done, true, fmt.Errorf(
				"the new index does not accept documents now: HTTP %d %s",
				f.Status,
				f.Cause.reason(),
			)
		}
		done.Refused = append(done.Refused, sink.RefusedCopy{ID: f.ID, Reason: o.Reason})
	}
	return done, true, nil
}

func raw(f fault) json.RawMessage {
	text, _ := json.Marshal(f) // cannot fail: the fault contains only strings
	return text
}

// StopFill cancels copies into an index.
func (s *Sink) StopFill(ctx context.Context, into string) error {
	going, err := s.runningCopies(ctx, into)
	if errors.Is(err, sink.ErrDenied) {
		return nil // without this permission, Fill never starts a copy
	}
	if err != nil {
		return err
	}
	for _, name := range going {
		err := s.slow(
			ctx,
			http.MethodPost,
			"/_tasks/"+url.PathEscape(name)+"/_cancel?wait_for_completion=true",
			nil,
			nil,
		)
		if err != nil {
			return fmt.Errorf("cancel the engine's copy: %w", err)
		}
	}
	return nil
}
