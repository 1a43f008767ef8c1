// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"net"

	"github.com/spf13/cobra"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/console"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/simulation/forecast"
	"github.com/lullhq/lull/internal/terminal"
)

const consoleListen = "127.0.0.1:7171"

func consoleCommand(std *streams, t *target) *cobra.Command {
	address, send := consoleListen, false
	return define(&cobra.Command{
		Use: "console", Short: "Serve the console of a deployed stack on this machine", Args: cobra.NoArgs,
		Long: "Serves a page on this machine that shows what the deployed stack of --config does: its queues, " +
			"what waits and why, dead letters, and search. It asks AWS with your credentials, for example those of the " +
			"stack's reader role, and only while a browser shows the page. It lists waiting documents without a scan of " +
			"the table.\n\n" +
			"Open the address that it prints, which contains a secret token. The page shows documents of the stack. So it " +
			"answers only requests with the token, and only on an address of this machine. From another machine, use " +
			"ssh -L. Ctrl-C ends it.\n\n" +
			"Redriving and dropping dead letters needs the rights of the operator's role. With --send the page can " +
			"also publish messages, which needs the rights of the publisher's role.\n\n" +
			"A `lull dev` serves its console itself, at the address that it prints.",
		RunE: t.verb(func(c *cobra.Command, api operate.API, _ []string) error {
			return serveConsole(c.Context(), std, t, api, address, send)
		}),
	}, ends{
		exitOK: "Ctrl-C ended it", exitFailed: "the page could not be served", exitUsage: "usage, settings or address",
	},
		flag("listen", &address, "`ADDR` of the page: an address of this machine, port 0 for any"),
		t.logsFlag("show the decisions that the functions logged in the last `DURATION`, such as 3h, on the page of "+
			"a document"),
		flag("send", &send, "also serve the view that publishes messages to try"),
	)
}

// serveConsole serves the page until Ctrl-C.
func serveConsole(ctx context.Context, std *streams, t *target, api operate.API, address string, send bool) error {
	if !t.stack {
		return usagef("console: add --aws for a deployed stack; a 'lull dev' serves its console itself, at %s",
			operate.Shown(t.dev))
	}
	cfg, err := t.loadConfig(config.KindsLinked)
	if err != nil {
		return usage(err)
	}
	l, err := listenHere(ctx, address)
	if err != nil {
		return usage(err)
	}
	token := console.NewToken()
	o := console.Options{
		API: api, Mode: console.AWS, Stack: cfg.Stack, Send: send, By: whoami(), Config: cfg, Clock: clock.System{},
	}
	o.Meter = t.meter
	if o.Simulator, err = forecast.NewComparer(cfg); err != nil {
		return err
	}
	terminal.Printf(std.out, "the console of stack %s, for you alone: http://%s/#token=%s\n", cfg.Stack, l.Addr(), token)
	return console.Serve(ctx, l, console.Guard{Token: token, Always: true}, console.New(o))
}

// listenHere listens on an address of this machine only.
func listenHere(ctx context.Context, address string) (net.Listener, error) {
	l, err := listen(ctx, address)
	if err != nil {
		return nil, err
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		_ = l.Close() // no client has connected yet
		return nil, usagef("--listen %s: other machines reach this address, and its answers are not encrypted: "+
			"listen on 127.0.0.1, and use ssh -L from another machine", address)
	}
	return l, nil
}
