package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/operate"
	"github.com/lullhq/lull/internal/shard"
)

func waitCommand(t *target) *cobra.Command {
	var version string
	var timeout time.Duration
	c := t.verb(&cobra.Command{
		Use: "wait KEY --version V", Short: "Wait until a version of a document, or a newer one, is committed",
		Long: "What a publish button needs. Exit 0 once the version, or a newer one, is committed; 3 if it is a dead letter; 4 if the time is up.",
		Args: cobra.ExactArgs(1),
	}, func(c *cobra.Command, api operate.API, args []string) error {
		key, err := keyArg(args[0])
		if err != nil {
			return err
		}
		if version == "" {
			return usage(fmt.Errorf("--version: say which version to wait for"))
		}
		x, err := waitFor(c.Context(), api, key, version, timeout)
		if err != nil {
			return err
		}
		return t.print(c, x, func(w io.Writer) { fmt.Fprintln(w, x.Sentence) })
	})
	c.Flags().StringVar(&version, "version", "", "the upstream's version")
	c.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait")
	return c
}

// waitFor asks until the version is committed or newer ones are.
func waitFor(ctx context.Context, api operate.API, key shard.DocID, version string, timeout time.Duration) (operate.Explanation, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last operate.Explanation
	for {
		x, err := api.Explain(ctx, key)
		switch {
		case err != nil && ctx.Err() == nil:
			return x, err
		case err == nil:
			last = x
			reached, err := reaches(x, version)
			if err != nil {
				return x, usage(err)
			}
			if reached {
				return x, nil
			}
			for _, l := range x.Letters {
				if l.Version == version && x.Pending == "" {
					return x, &exitError{exitLetters, fmt.Errorf("version %s of %s is a dead letter: %s: %s", version, key, l.Reason, l.Detail)}
				}
			}
		}
		timer := time.NewTimer(250 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return last, &exitError{exitMissing, fmt.Errorf("version %s of %s was not committed within %s. %s", version, key, timeout, last.Sentence)}
			}
			return last, ctx.Err()
		}
	}
}

// reaches reports whether the committed version is the one asked for or a newer one. The class is the row's.
func reaches(x operate.Explanation, version string) (bool, error) {
	if x.Committed == "" {
		return false, nil
	}
	k, err := shard.ParseOrderKey(x.Committed)
	if err != nil {
		return false, fmt.Errorf("read the row's order key: %w", err)
	}
	p, err := k.Parts()
	if err != nil {
		return false, fmt.Errorf("read the row's order key: %w", err)
	}
	want, err := shard.ParseVersion(p.Version.Class(), version)
	if err != nil {
		return false, fmt.Errorf("--version: %w", err)
	}
	return p.Version.Compare(want) >= 0, nil
}
