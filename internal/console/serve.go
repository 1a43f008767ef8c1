package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// headerTimeout and requestTimeout bound how long a request may take to arrive. So an
// unfinished request blocks neither a connection nor the end of the run. goodbye is how long the
// end waits for running answers. Answers have no limit, because a redrive at a low rate takes
// hours.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = time.Minute // from its first byte to its last
	maxHeaderBytes = 64 << 10
	goodbye        = 3 * time.Second
)

// Serve answers on l until ctx ends, and closes l. The contexts of running requests end with ctx.
// Answers that have not ended three seconds later are cut off. The guard protects h.
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
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
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
