// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// headerTimeout and requestTimeout bound how long a request may take to arrive. So an unfinished
// request blocks neither a connection nor the shutdown of the server. shutdownTime is how long the
// shutdown waits for running answers. Apart from that, answers have no time limit, because a
// redrive at a low rate takes hours.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = time.Minute // from the first byte of a request to the last
	maxHeaderBytes = 64 << 10
	shutdownTime   = 3 * time.Second
)

// Serve answers requests on l until ctx ends, and then closes l. The contexts of running requests
// end with ctx. Answers that have not ended three seconds later are cut off. The guard protects h.
func Serve(ctx context.Context, l net.Listener, g Guard, h http.Handler) error {
	at, ok := l.Addr().(*net.TCPAddr)
	server := &http.Server{
		Handler:           g.Protect(h, ok && at.IP.IsLoopback()),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(l) }()
	select {
	case err := <-stopped:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		err := server.Shutdown(patient)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		if served := <-stopped; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
}
