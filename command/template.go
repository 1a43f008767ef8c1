// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/terminal"
	"github.com/lullhq/lull/sink"
)

// prepared is what `lull index install-template` did to a sink, or what it would send to one.
type prepared struct {
	Sink        string             `json:"sink"`
	Collections []shard.Collection `json:"collections"`
	Text        string             `json:"text,omitempty"` // with --print
}

// installTemplateCommand prepares what a deployment cannot: index templates and tables. It talks to
// the sinks only, not to an AWS stack.
func installTemplateCommand(std *streams, t *target) *cobra.Command {
	var collections []string
	show := false
	return define(&cobra.Command{
		Use: "install-template", Short: "Prepare every sink of --config before its first document: index templates, tables",
		Long: "Prepares every sink of --config before its first document. OpenSearch and Elasticsearch get an index " +
			"template, PostgreSQL gets tables, and Typesense gets collections. All of them are for the indices of the " +
			"settings' collections only, and what exists stays as it is.\n\n" +
			"Settings without a list of collections take events of any collection. Then it prepares the default " +
			"collections, and those that --collection names.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := t.loadConfig(config.KindsLinked)
			if err == nil {
				err = alsoCollections(cfg, collections)
			}
			if err != nil {
				return usage(err)
			}
			done := []prepared{}
			for _, name := range deployable(cfg) {
				one := prepared{Sink: name, Collections: cfg.CollectionsOf(name)}
				did, err := prepareSink(c.Context(), t.aws, cfg, &one, show)
				if err != nil {
					return err
				}
				if did {
					done = append(done, one)
				}
			}
			return std.print(map[string][]prepared{"sinks": done}, func(w io.Writer) {
				for _, one := range done {
					if show {
						terminal.Printf(w, "%s", one.Text)
					} else {
						terminal.Printf(w, "sink %s is prepared for %s\n", one.Sink, few(one.Collections))
					}
				}
			})
		},
	}, ends{
		exitOK: "every sink is prepared", exitFailed: "a sink refused it or did not answer",
		exitUsage: "usage or settings",
	},
		flag("collection", &collections, "also prepare for collection `NAME`, if the settings list none; may be repeated"),
		flag("print", &show, "print what would be sent, such as SQL, and send nothing"),
	)
}

// prepareSink prepares one sink, or with show only returns what it would send. did is false if the
// sink needs no preparation.
func prepareSink(ctx context.Context, find credentials, cfg *config.Config, one *prepared, show bool) (did bool,
	err error,
) {
	s, err := openSink(ctx, find, cfg, one.Sink)
	if err != nil {
		return false, usage(err)
	}
	defer closeSink(s)
	p, ok := s.(sink.Preparer)
	switch {
	case !ok:
		return false, nil
	case show:
		one.Text, err = p.Preparation()
	default:
		err = p.Prepare(ctx)
	}
	if err != nil {
		return false, &exitError{exitFailed, fmt.Errorf("prepare sink %s: %w", one.Sink, err)}
	}
	return true, nil
}

// alsoCollections adds collections to settings that list none.
func alsoCollections(cfg *config.Config, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if len(cfg.Collections) > 0 {
		return fmt.Errorf("--collection %s: the settings list their collections: add it there", names[0])
	}
	all := map[string]config.Collection{}
	for name := range cfg.Sinks {
		for _, known := range cfg.CollectionsOf(name) {
			all[string(known)] = config.Collection{}
		}
	}
	for _, name := range names {
		if err := shard.Collection(name).Validate(); err != nil {
			return fmt.Errorf("--collection: %w", err)
		}
		all[name] = config.Collection{}
	}
	cfg.Collections = all
	return nil
}

// few lists the names of collections, at most ten.
func few(collections []shard.Collection) string {
	const most = 10
	var names []string
	for _, c := range collections[:min(len(collections), most)] {
		names = append(names, string(c))
	}
	text := strings.Join(names, ", ")
	if more := len(collections) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
