// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
	"github.com/lullhq/lull/searchable"
)

func waitCommand(std *streams, t *target) *cobra.Command {
	var version string
	var timeout time.Duration
	var searchable bool
	var told operate.State // the state that was last printed to standard error

	wait := func(api operate.API, ctx context.Context, key shard.DocID) (operate.Explanation, error) {
		unseen := "" // why no search finds the committed version
		x, err := waitUntil(ctx, api, key, "version "+version, timeout, func(x operate.Explanation) (bool, error) {
			done, err := reaches(x, version)
			if done && searchable {
				unseen, err = unfound(ctx, api, key, version)
				return unseen == "" && err == nil, err
			}
			if !done && err == nil && x.State != told {
				if x.State == operate.StateNobody { // the event may have been sent a moment ago
					x.Sentence = fmt.Sprintf("Nothing is known of %s yet.", key)
				}
				terminal.Printf(std.err, "%s\n", x.Sentence)
				told = x.State
			}
			return done, err
		})
		if err != nil && unseen != "" {
			err = &exitError{exitMissing, fmt.Errorf("version %s of %s is committed, but not searchable in time: %s", version, key,
				unseen)}
		}
		return x, err
	}
	return define(&cobra.Command{
		Use: "wait KEY --version V", Short: "Wait until a version of a document, or a newer one, is committed",
		Long: "Asks every quarter of a second, and at the end says which state the document is in, and why. Until then " +
			"it prints to standard error what the document waits for, each time that this changes. A publish button can " +
			"call it.\n\n" +
			"With --searchable it also waits until a search finds that version in every sink: an engine such as OpenSearch " +
			"shows a write only after its next refresh. It asks the engine itself. If an engine cannot say it, that is an " +
			"error.",
		Args: cobra.ExactArgs(1),
		RunE: question(std, t, ofKey(wait), func(w io.Writer, x operate.Explanation) {
			terminal.Printf(w, "%s\n",
				x.Sentence)
		}),
	}, ends{
		exitOK:      "the version, or a newer one, is committed, and with --searchable a search finds it",
		exitFailed:  "the stack did not answer, or a sink does not say what a search finds",
		exitUsage:   "usage or settings, or a version of another class than the document's versions",
		exitRefused: "the version is a dead letter", exitMissing: "timed out",
	},
		flag("version", &version, "the upstream's version `V`", needed("say which version to wait for")),
		flag("searchable", &searchable, "wait until a search finds the version, too"),
		flag("timeout", &timeout, "the longest time `D` to wait; without it a minute more than the collection's quiet "+
			"window or pace", someTime(&timeout)),
	)
}

// unfound says why a search does not find this version or a newer one in some sink. It is empty if
// a search finds it in every sink. An error says that a sink does not say what a search finds.
func unfound(ctx context.Context, api operate.API, key shard.DocID, version string) (string, error) {
	a, err := api.Searchable(ctx, searchable.Question{Key: string(key), Version: version})
	if err != nil {
		return "", err
	}
	for _, in := range a.Sinks {
		switch in.Searchable {
		case searchable.Yes:
		case searchable.Unknown:
			return "", fmt.Errorf("sink %s: %s", in.Sink, in.Why)
		case searchable.No:
			return "sink " + in.Sink + ": " + in.Why, nil
		}
	}
	return "", nil
}

// waitStep is how long waitUntil waits between two requests.
const waitStep = 250 * time.Millisecond

// waitUntil asks until reached is true for an explanation, or the time is over. what names the
// wanted state. An error of the first request is final. A later error may be temporary. [allowed]
// has the default timeout.
func waitUntil(ctx context.Context, api operate.API, key shard.DocID, what string, timeout time.Duration,
	reached func(operate.Explanation) (bool, error),
) (operate.Explanation, error) {
	timeout = allowed(ctx, api, key, timeout)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last operate.Explanation
	for asked := false; ; asked = true {
		x, err := api.Explain(limited, key)
		if err != nil && limited.Err() == nil && !asked {
			return x, err
		}
		if err == nil {
			last = x
			if done, err := reached(x); done || err != nil {
				return x, err
			}
		}
		if sleep(limited, waitStep) == nil {
			continue
		}
		if ctx.Err() != nil {
			return last, ctx.Err()
		}
		text := fmt.Sprintf("%s of %s was not committed within %s. %s", what, key, timeout,
			terminal.Line(last.Sentence))
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			text += " (" + err.Error() + ")"
		}
		return last, &exitError{exitMissing, errors.New(text)}
	}
}

// allowed returns the longest time that a write of a document may take. Without the flag --timeout,
// it is a minute more than the quiet window or the pace of the collection.
func allowed(ctx context.Context, api operate.API, key shard.DocID, timeout time.Duration) time.Duration {
	if timeout != 0 {
		return timeout
	}
	timeout = time.Minute
	if x, err := api.Explain(ctx, key); err == nil {
		timeout += max(x.Quiet, x.Pace)
	}
	return timeout
}

// reaches reports whether this version or a newer one is committed in every sink. An error says
// that the version will never be committed.
func reaches(x operate.Explanation, version string) (bool, error) {
	for _, other := range x.Others {
		if there, err := reaches(other, version); !there || err != nil {
			return false, err
		}
	}
	committed, err := atLeast(x.Committed, version)
	if err != nil || committed {
		return committed, err
	}
	pending, err := atLeast(x.Pending, version)
	if err != nil || pending {
		return false, err
	}
	for _, l := range x.Letters {
		if l.Version == version && l.State == deadletter.Parked {
			return false, &exitError{exitRefused, fmt.Errorf("version %s of %s is a dead letter: %s: %s", version,
				x.Key, l.Reason, l.Detail)}
		}
	}
	return false, nil
}

// atLeast is [operate.AtLeast] for a version of the command line.
func atLeast(printed, version string) (bool, error) {
	there, err := operate.AtLeast(printed, version)
	if errors.Is(err, operate.ErrInput) {
		err = usagef("--version: %w", err)
	}
	return there, err
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
