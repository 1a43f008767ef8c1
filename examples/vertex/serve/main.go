// SPDX-License-Identifier: Apache-2.0

// Serve runs the server of package contract, to try a sink of the kind vertex without Google Cloud:
//
//	go run ./serve -listen 127.0.0.1:8092
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"example.org/vertex"
)

func main() {
	at := flag.String("listen", "127.0.0.1:8092", "the address to listen on, as host:port")
	flag.Parse()
	server := &http.Server{Addr: *at, Handler: contract.New(), ReadHeaderTimeout: 5 * time.Second}
	fmt.Fprintln(os.Stderr, "serve:", server.ListenAndServe())
	os.Exit(1)
}
