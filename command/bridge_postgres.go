// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/lullhq/lull/internal/operator/bridge"
	"github.com/lullhq/lull/internal/operator/bridge/postgres"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/terminal"
)

// postgresEnv names the variable with the address of PostgreSQL.
const postgresEnv = "LULL_POSTGRES_URL"

// The names that `lull bridge postgres setup` and the bridge use without flags.
const defaultSlot, defaultPublication = "lull", "lull"

type postgresFlags struct {
	sending
	database     postgres.Database
	url          string
	collections  []string
	copy, copyTo string
}

func bridgePostgres(std *streams, t *target) *cobra.Command {
	f := postgresFlags{sending: newSending()}
	f.lane = string(flight.Live)
	f.database = postgres.Database{Slot: defaultSlot, Publication: defaultPublication, Prefetch: 500}
	c := define(&cobra.Command{
		Use: "postgres", Short: "Send the rows of PostgreSQL's tables", Args: cobra.NoArgs,
		Long: "Sends each change of a row to lull: to a 'lull dev', with --aws to the live queue of a deployed sink, or to " +
			"the queue whose URL --to names. It reads a logical replication slot, and the slot is confirmed only to rows " +
			"that the queue has accepted. If either side is killed, nothing is lost. Each row is a document in lull's own " +
			"format (source kind native): its id is the primary key, and its collection is the table's name.\n\n" +
			"With --copy FILE it first sends the rows that the tables already have, through the bulk lane, beside the " +
			"changes. FILE keeps how far the copy is, so a copy that was killed continues. If FILE says that a table was " +
			"copied, the table is not copied again.\n\n" +
			"The database needs a publication, a slot and a role: 'lull bridge postgres setup' prints the SQL. Give the " +
			"password in PGPASSWORD, in the file of PGPASSFILE, or with the address in " + postgresEnv + ": other users of " +
			"the machine may read a command line.\n\n" +
			"It logs a line a minute, with the slot's lag and the log that PostgreSQL keeps for it. A slot that PostgreSQL " +
			"has dropped or invalidated ends the bridge.",
		RunE: func(c *cobra.Command, _ []string) error { return runPostgres(c.Context(), std, t, &f) },
	}, ends{
		exitOK:     "SIGTERM or Ctrl-C ended it",
		exitFailed: "PostgreSQL refused the user, the slot or the publication is missing or lost, or the address of --listen is in use",
		exitUsage:  "usage or settings: nothing was read",
	}, append(f.options(),
		flag("url", &f.url, "`ADDRESS` of PostgreSQL, postgres://USER@HOST:PORT/DATABASE; without it the variable "+
			postgresEnv+", and what that leaves out the variables of libpq, such as PGHOST"),
		flag("slot", &f.database.Slot, "`NAME` of the replication slot"),
		flag("publication", &f.database.Publication, "`NAME` of the publication"),
		flag("collection", &f.collections, "`TABLE=COLLECTION`, such as public.pages=articles, for a table whose "+
			"collection has another name; repeat it for more tables"),
		flag("copy", &f.copy, "`FILE` that keeps how far the copy of the tables is; without it nothing is copied"),
		flag("copy-to", &f.copyTo, "if --to is a URL: the `URL` of the bulk queue, which gets the copy"),
		flag("prefetch", &f.database.Prefetch, "how many rows may be unconfirmed; at most so many are in memory",
			between(&f.database.Prefetch, 1, maxPrefetch, "1 to 65535")),
	)...)
	c.AddCommand(bridgePostgresSetup(std))
	return c
}

func bridgePostgresSetup(std *streams) *cobra.Command {
	s := postgres.Setup{Slot: defaultSlot, Publication: defaultPublication, Role: "lull"}
	return standAlone(define(&cobra.Command{
		Use: "setup TABLE...", Short: "Print the SQL that prepares PostgreSQL for the bridge",
		Args: cobra.MinimumNArgs(1),
		Long: "Prints the SQL of a publication of these tables, a slot and a role with the rights that the bridge needs, " +
			"for psql. It connects to nothing. A table is SCHEMA.TABLE; without SCHEMA it is in the schema public.",
		RunE: func(_ *cobra.Command, tables []string) error {
			if !postgres.ValidSlot(s.Slot) {
				return usagef("--slot %q: want 1 to 63 of a-z, 0-9 and _", s.Slot)
			}
			for _, name := range append([]string{s.Publication, s.Role}, tables...) {
				if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
					return usagef("%q: want a name of printable characters", name)
				}
			}
			s.Tables = tables
			sql := s.SQL()
			return std.print(struct {
				SQL string `json:"sql"`
			}{sql}, func(w io.Writer) {
				for line := range strings.Lines(sql) {
					terminal.Printf(w, "%s\n", strings.TrimSuffix(line, "\n"))
				}
			})
		},
	}, ends{exitOK: "the SQL was printed", exitFailed: "the answer could not be written", exitUsage: "usage"},
		flag("slot", &s.Slot, "`NAME` of the replication slot"),
		flag("publication", &s.Publication, "`NAME` of the publication"),
		flag("role", &s.Role, "`NAME` of the role"),
	))
}

// check checks the flags without calling any service.
func (f *postgresFlags) check(t *target) error {
	d := &f.database
	if err := noPassword(f.url); err != nil {
		return err
	}
	if err := d.Parse(cmp.Or(f.url, os.Getenv(postgresEnv))); err != nil {
		return usagef("--url: %s", err)
	}
	if !postgres.ValidSlot(d.Slot) {
		return usagef("--slot %q: want 1 to 63 of a-z, 0-9 and _", d.Slot)
	}
	d.Collections = map[string]string{}
	for _, of := range f.collections {
		name, collection, ok := strings.Cut(of, "=")
		if !ok || !strings.Contains(name, ".") || collection == "" {
			return usagef("--collection %s: want SCHEMA.TABLE=COLLECTION", of)
		}
		d.Collections[name] = collection
	}
	switch {
	case f.copy != "" && f.direct() && f.copyTo == "":
		return usagef("--copy: name the bulk queue, which gets the copy, with --copy-to")
	case f.copyTo != "" && (f.copy == "" || !f.direct()):
		return usagef("--copy-to: only with --copy, and --to with the URL of a queue")
	}
	return f.sending.check(t)
}

// noPassword refuses an address in a flag that contains a password. The error does not contain it.
func noPassword(address string) error {
	if address != "" && postgres.HasPassword(address) {
		return usagef("--url: the address contains a password, which other users of the machine may read: give it in "+
			"PGPASSWORD, in the file of PGPASSFILE, or with the address in %s", postgresEnv)
	}
	return nil
}

func runPostgres(ctx context.Context, std *streams, t *target, f *postgresFlags) error {
	if err := f.check(t); err != nil {
		return err
	}
	o := f.bridge(std, f.database.Slot)
	f.database.Log = o.Log
	changes := &postgres.Stream{Database: f.database}
	o.Broker = changes
	done, err := f.open(ctx, t, &o)
	if err != nil {
		return err
	}
	defer done()
	both, ctx := errgroup.WithContext(ctx)
	if f.copy != "" {
		copies, done, err := f.copies(ctx, std, t)
		if err != nil {
			return err
		}
		defer done()
		var ended atomic.Bool
		changes.Beside = func() string {
			if h := copies.Health(); !ended.Load() && !h.Healthy {
				return "copy: " + h.Problem
			}
			return ""
		}
		both.Go(func() error {
			defer ended.Store(true)
			if err := copies.Run(ctx); err != nil {
				return &exitError{exitFailed, err}
			}
			return nil
		})
	}
	both.Go(func() error { return f.serve(ctx, bridge.New(o)) })
	return both.Wait()
}

// copies returns the bridge that copies the tables, through the bulk lane.
func (f *postgresFlags) copies(ctx context.Context, std *streams, t *target) (*bridge.Bridge, func(), error) {
	to := f.sending
	to.lane, to.to = string(flight.Bulk), cmp.Or(f.copyTo, f.to)
	o := to.bridge(std, f.database.Slot+", copy")
	d := f.database
	d.Log = o.Log
	o.Broker = &postgres.Copy{Database: d, File: f.copy}
	done, err := to.open(ctx, t, &o)
	if err != nil {
		return nil, nil, err
	}
	return bridge.New(o), done, nil
}
