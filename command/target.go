// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
)

// target says which stack a command talks to, and opens it: a `lull dev` by its address, or a
// deployed stack by its settings.
type target struct {
	dev    string
	stack  bool
	config string

	aws   credentials
	audit io.Writer     // gets a line for each change of a deployed stack
	meter *awsMeter     // of the deployed stack; nil before it is opened
	logs  time.Duration // how far back explain reads the functions' logs, 0 for not at all
}

// awsEnv makes --aws the default, and devEnv is the default of --dev.
const (
	awsEnv = "LULL_AWS"
	devEnv = "LULL_DEV"
)

func (t *target) flags() []option {
	return []option{
		flag("dev", &t.dev, "talk to the 'lull dev' at this `URL`, as "+devEnv+"=URL does"),
		flag("aws", &t.stack, "talk to the deployed stack of --config, as "+awsEnv+
			"=1 does; the AWS SDK finds endpoint, region and credentials"),
		flag("config", &t.config, "with --aws: the `FILE` of settings that was deployed"),
	}
}

// check refuses flags that contradict each other.
func (t *target) check(f *pflag.FlagSet) error {
	dev, aws := f.Changed("dev"), f.Changed("aws")
	if dev && aws && t.stack {
		return usagef("--dev and --aws: choose one stack to talk to")
	}
	if !dev && !aws {
		t.stack = os.Getenv(awsEnv) != ""
	}
	if u := os.Getenv(devEnv); u != "" && !dev {
		t.dev = u
	}
	if u, err := url.Parse(t.dev); !t.stack && (err != nil || u.Scheme != "http" && u.Scheme != "https" ||
		u.Host == "") {
		return usagef("--dev %s: want an address such as http://%s", operate.Shown(t.dev), defaultListen)
	}
	return nil
}

// anyKind lists the commands that neither open a sink nor decode a message. They work on a deployed
// stack whose kinds this program does not link.
var anyKind = []string{
	"cancel", "dead", "explain", "list", "object", "pause", "rebuild status", "rescue", "reset", "resume", "status",
	"wait",
}

// kindsFor returns the kinds that a command needs.
func kindsFor(c *cobra.Command) config.Kinds {
	_, path, _ := strings.Cut(c.CommandPath()+" ", " ") // without the program's name
	if slices.ContainsFunc(anyKind, func(name string) bool { return strings.HasPrefix(path, name+" ") }) {
		return config.KindsAny
	}
	return config.KindsLinked
}

// open connects; done closes the connections. It only asks the stack where its queues are.
func (t *target) open(ctx context.Context, kinds config.Kinds) (api operate.API, done func(), err error) {
	if !t.stack {
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
		return (&operate.Client{Base: t.dev, HTTP: client}).API(), client.CloseIdleConnections, nil
	}
	cfg, err := t.loadConfig(kinds)
	if err != nil {
		return api, nil, usage(err)
	}
	o, done, err := t.openAWS(ctx, cfg)
	if err != nil {
		return api, nil, usage(err)
	}
	return o.API(), done, nil
}

// loadConfig reads and validates the settings of --config.
func (t *target) loadConfig(kinds config.Kinds) (*config.Config, error) {
	cfg, _, err := yamlfile.CheckAs(t.config, kinds)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	return &cfg, nil
}

// run is the function of a command.
type run = func(c *cobra.Command, args []string) error

// verb runs a command that asks the stack.
func (t *target) verb(do func(c *cobra.Command, api operate.API, args []string) error) run {
	return func(c *cobra.Command, args []string) error {
		api, done, err := t.open(c.Context(), kindsFor(c))
		if err != nil {
			return err
		}
		defer done()
		return do(c, api, args)
	}
}

// question runs a command that asks the stack one thing and prints the answer, as a table by show.
func question[A any](std *streams, t *target, ask func(operate.API, context.Context, []string) (A, error),
	show func(w io.Writer, answer A),
) run {
	return t.verb(func(c *cobra.Command, api operate.API, args []string) error {
		answer, err := ask(api, c.Context(), args)
		if err != nil {
			return err
		}
		return std.print(answer, func(w io.Writer) { show(w, answer) })
	})
}

// ofKey is a question about the document whose key is the first argument.
func ofKey[A any](ask func(operate.API, context.Context, shard.DocID) (A, error)) func(operate.API, context.Context,
	[]string) (A, error) {
	return func(api operate.API, ctx context.Context, args []string) (none A, err error) {
		key, err := keyArg(args[0])
		if err != nil {
			return none, err
		}
		return ask(api, ctx, key)
	}
}

// failed gives an error of a stack its exit code.
func failed(err error) error {
	var exit *exitError
	var wrong *feed.InputError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		return err
	case errors.Is(err, context.Canceled):
		return &exitError{exitFailed, fmt.Errorf("interrupted: %w", err)}
	case errors.Is(err, operate.ErrNotFound):
		return &exitError{exitMissing, err}
	case errors.Is(err, operate.ErrInput), errors.As(err, &wrong):
		return usage(err)
	}
	return &exitError{exitFailed, err}
}

// whoami returns the name of the user, for the audit.
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
