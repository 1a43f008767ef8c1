// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// devConfig returns the validated settings with the flags applied. If --quiet makes the default
// batching window impossible and no file sets a window, devConfig shortens the window, and returns
// a line that says so.
func devConfig(c *cobra.Command, f devFlags) (*config.Config, []string, error) {
	cfg := config.Default()
	if f.config != "" {
		loaded, err := yamlfile.Load(f.config)
		if err != nil {
			return nil, nil, fmt.Errorf("--config: %w", err)
		}
		cfg = loaded
	}
	for _, choose := range []func(*config.Config) error{f.chooseSource, f.chooseCollection, f.chooseSinks} {
		if err := choose(&cfg); err != nil {
			return nil, nil, err
		}
	}
	var fitted bool
	if c.Flags().Changed("quiet") {
		cfg.SetQuiet(f.quiet)
		fitted = f.config == "" && fitWindow(&cfg)
	}
	if c.Flags().Changed("max-wait") {
		cfg.Debounce.MaxWait = f.maxWait
	}
	cfg.Complete()
	if err := cfg.Validate(); err != nil {
		return nil, nil, errors.Join(errors.New("the settings cannot keep lull's promises"), err)
	}
	if !fitted {
		return &cfg, nil, nil
	}
	line := fmt.Sprintf("--quiet %s: for this run batches gather for %s, and a burst may spread over %s",
		cfg.Debounce.Quiet, cfg.Queues.Live.Window, cfg.Queues.BurstSpread)
	if cfg.Queues.Live.Window == 0 {
		// SQS needs a window for such batches. The queue in memory does not.
		standard := config.Default()
		cfg.Queues.Live.Batch, cfg.Queues.Bulk.Batch = standard.Queues.Live.Batch, standard.Queues.Bulk.Batch
	}
	return &cfg, []string{line}, nil
}

// asDeployed returns settings that SQS accepts: without a batching window, a batch has at most ten
// messages.
func asDeployed(cfg *config.Config) *config.Config {
	own := *cfg
	for _, l := range []*config.Lane{&own.Queues.Live, &own.Queues.Bulk} {
		if l.Window == 0 {
			l.Batch = min(l.Batch, 10)
		}
	}
	return &own
}

// chooseSource applies --source.
func (f *devFlags) chooseSource(cfg *config.Config) error {
	if f.source == "" {
		return nil
	}
	if _, known := cfg.Sources[f.source]; !known {
		switch {
		case f.config != "":
			return fmt.Errorf("--source %s: %s names no such source", f.source, f.config)
		case f.source != "native" && f.source != "govuk":
			return fmt.Errorf("--source %s: want native or govuk, or a source that --config names", f.source)
		}
		cfg.Sources = map[string]config.Source{f.source: {Kind: f.source}}
	}
	if was, other := cfg.Sources[cfg.DefaultSource]; other && cfg.DefaultSource != f.source && len(was.Match) == 0 {
		was.Match = []source.Match{{Named: true}} // in this run a message reaches it by its name
		cfg.Sources[cfg.DefaultSource] = was
	}
	cfg.DefaultSource = f.source
	return nil
}

// chooseCollection applies --collection.
func (f *devFlags) chooseCollection(cfg *config.Config) error {
	if f.collection == "" {
		return nil
	}
	if err := shard.Collection(f.collection).Validate(); err != nil {
		return fmt.Errorf("--collection: %w", err)
	}
	cfg.DefaultCollection = f.collection
	if _, known := cfg.Collections[f.collection]; !known && len(cfg.Collections) > 0 {
		cfg.Collections[f.collection] = config.Collection{}
	}
	if s, ok := cfg.Sources[cfg.DefaultSource]; ok {
		s.Collection = f.collection
		cfg.Sources[cfg.DefaultSource] = s
	}
	return nil
}

// fitWindow makes the default batching window and burst spread fit a shorter quiet window, and
// reports whether it had to.
func fitWindow(cfg *config.Config) bool {
	q, quiet := &cfg.Queues, max(cfg.Debounce.Quiet, 0)
	if q.Bulk.Window+q.BurstSpread <= quiet {
		return false
	}
	window := (quiet / 2).Truncate(time.Second)
	q.Live.Window, q.Bulk.Window = min(q.Live.Window, window), min(q.Bulk.Window, window)
	q.BurstSpread = quiet - q.Bulk.Window
	if window == 0 {
		q.Live.Batch, q.Bulk.Batch = 10, 10 // the largest batch of SQS without a window
	}
	return true
}
