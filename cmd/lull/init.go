package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/terminal"
	"github.com/lullhq/lull/sink"
)

// initCommand prepares what a deployment cannot: the sinks' index templates. It talks to the sinks
// only, not to an AWS stack.
func (a *app) initCommand() *cobra.Command {
	return define(&cobra.Command{
		Use: "init", Short: "Put the index template on every OpenSearch sink of --config, before the first document",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.loadConfig()
			if err != nil {
				return usage(err)
			}
			done := []string{}
			for _, name := range deployable(cfg) {
				s, err := a.openSink(c.Context(), cfg, name, "")
				if err != nil {
					return usage(err)
				}
				p, ok := s.(sink.Preparer)
				if ok {
					err = p.Prepare(c.Context())
				}
				closeSink(s)
				if !ok {
					continue
				}
				if err != nil {
					return &exitError{exitFailed, fmt.Errorf("sink %s: put the index template: %w", name, err)}
				}
				done = append(done, name)
			}
			return a.print(map[string][]string{"templates": done}, func(w io.Writer) {
				for _, name := range done {
					terminal.Printf(w, "sink %s has its index template\n", name)
				}
			})
		},
	}, map[int]string{
		exitOK: "every sink has its template", exitFailed: "a sink refused it or did not answer",
		exitUsage: "usage or settings",
	})
}
