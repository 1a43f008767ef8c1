// SPDX-License-Identifier: Apache-2.0

// Webhook is an example: a receiver for a sink of the kind webhook, which verifies signatures,
// compares fences and keeps documents as files. See README.md in the same folder.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "webhook:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("webhook", flag.ContinueOnError)
	at := flags.String("listen", "127.0.0.1:8091", "the address to listen on, as host:port")
	folder := flags.String("folder", "documents", "the folder for the documents")
	if err := flags.Parse(args); err != nil {
		return err
	}
	secrets, err := parseSecrets(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		return fmt.Errorf("WEBHOOK_SECRET: %w", err)
	}
	if len(secrets) == 0 {
		fmt.Fprintln(os.Stderr, "webhook: WEBHOOK_SECRET is not set: requests are accepted without a signature")
	}
	if err := os.MkdirAll(*folder, 0o700); err != nil {
		return err
	}
	server := &http.Server{
		Addr: *at, ReadTimeout: time.Minute, ReadHeaderTimeout: 5 * time.Second,
		Handler: &receiver{secrets: secrets, store: &store{folder: *folder}, now: time.Now},
	}
	fmt.Fprintln(os.Stderr, "webhook: listening at", *at)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
