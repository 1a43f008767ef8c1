package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// How long a request may take to arrive, and how long the end waits for those under way. A request
// that is never finished keeps neither a connection nor the end of the run. Answers have no limit:
// a redrive at a low rate takes hours.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = time.Minute // from its first byte to its last
	maxHeaderBytes = 64 << 10
	goodbye        = 3 * time.Second
)

// Serve answers on l until ctx ends, and closes it. The contexts of requests that are being
// answered then end with it; what has not ended three seconds later is cut off. The guard stands in
// front of h.
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
