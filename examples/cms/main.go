// SPDX-License-Identifier: Apache-2.0

// Cms is an example from end to end: a small content management system with a database, whose
// articles lull makes searchable, and a public page that searches them. See README.md in the same
// folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cms:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("cms", flag.ContinueOnError)
	at := flags.String("listen", "127.0.0.1:8080", "the address to listen on, as host:port")
	file := flags.String("database", "cms.db", "the file of the database")
	lull := flags.String("lull", "http://127.0.0.1:7070", "the URL of lull dev")
	if err := flags.Parse(args); err != nil {
		return err
	}
	db, err := openStore(ctx, *file)
	if err != nil {
		return fmt.Errorf("-database: %w", err)
	}
	defer db.close()
	api := &client{url: strings.TrimSuffix(*lull, "/"), http: &http.Client{Timeout: 10 * time.Second}}
	r := newRelay(db, api)
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { r.run(ctx) })
	defer running.Wait()
	defer end()

	server := &http.Server{
		Addr: *at, ReadTimeout: time.Minute, ReadHeaderTimeout: 5 * time.Second, Handler: newSite(db, r, api),
	}
	stopped := context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	defer stopped()
	fmt.Fprintf(os.Stderr, "cms: write at http://%s and search at http://%s/search\n", *at, *at)
	switch err := server.ListenAndServe(); {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("-listen: %w: choose another address, such as -listen 127.0.0.1:8081", err)
	case !errors.Is(err, http.ErrServerClosed):
		return err
	}
	return nil
}
