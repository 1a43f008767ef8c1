package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/user"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/operate"
)

// target says which stack a command talks to: a `lull dev` by its address, or a deployed stack by its settings.
type target struct {
	dev    string
	stack  bool
	config string
	output string
}

func (t *target) flags(f *pflag.FlagSet) {
	f.StringVar(&t.dev, "dev", "http://"+defaultListen, "address of a running `lull dev`")
	f.BoolVar(&t.stack, "aws", os.Getenv("LULL_AWS") != "", "talk to the deployed stack of --settings; endpoint, region and credentials as the AWS SDK finds them")
	f.StringVar(&t.config, "settings", "lull.yaml", "with --aws: the settings that were deployed")
	f.StringVarP(&t.output, "output", "o", "table", "table or json")
}

// open connects. Nothing is sent yet.
func (t *target) open(ctx context.Context) (operate.API, error) {
	if t.output != "table" && t.output != "json" {
		return nil, usage(fmt.Errorf("-o %s: want table or json", t.output))
	}
	if !t.stack {
		return &operate.Client{Base: t.dev, HTTP: &http.Client{}}, nil
	}
	cfg, err := t.settings()
	if err != nil {
		return nil, usage(err)
	}
	o, err := openAWS(ctx, cfg)
	if err != nil {
		return nil, usage(err)
	}
	return o, nil
}

func (t *target) settings() (*config.Config, error) {
	cfg, err := yamlfile.Load(t.config)
	if err != nil {
		return nil, fmt.Errorf("--settings: %w", err)
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("--settings %s: %w", t.config, err)
	}
	return &cfg, nil
}

// print writes the answer as JSON, or as a table by f.
func (t *target) print(c *cobra.Command, v any, f func(w io.Writer)) error {
	out := c.OutOrStdout()
	if t.output == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	f(w)
	return w.Flush()
}

// failed gives an error of a stack its exit code.
func failed(err error) error {
	var exit *exitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		return err
	case errors.Is(err, operate.ErrNotFound):
		return &exitError{exitMissing, err}
	case errors.Is(err, operate.ErrInput):
		return usage(err)
	}
	return &exitError{exitFailed, err}
}

// whoami is who asks, for the audit.
func whoami() string {
	who := "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		who += "@" + host
	}
	return who
}

// verb makes a command that asks the target.
func (t *target) verb(c *cobra.Command, run func(c *cobra.Command, api operate.API, args []string) error) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		api, err := t.open(c.Context())
		if err != nil {
			return err
		}
		return failed(run(c, api, args))
	}
	return c
}
