// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a listener with one connection in memory. A real connection would not use the clock of
// the test.
type pipes struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conn:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// serve starts a server for h, and returns the client's end of a connection to it.
func serve(t *testing.T, h http.Handler) (sender net.Conn, hangUp func() time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ours, theirs := net.Pipe()
	l := &pipes{make(chan net.Conn, 1), make(chan struct{})}
	l.conn <- theirs
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, Guard{}, h) }()
	return ours, func() time.Duration {
		began := time.Now()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		_ = ours.Close()
		return time.Since(began)
	}
}

func echo(w http.ResponseWriter, r *http.Request) {
	if b, err := io.ReadAll(r.Body); err == nil {
		_, _ = w.Write(b)
	}
}

const half = "POST /publish HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf"

func TestOneHalfSentRequestHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{
		"a body": half, "a header": "POST /publish HTTP/1.1\r\nHost: loc", "nothing": "",
	} {
		synctest.Test(t, func(t *testing.T) {
			sender, hangUp := serve(t, http.HandlerFunc(echo))
			usecasetest.Must(io.WriteString(sender, sent))(t)
			synctest.Wait()
			if took := hangUp(); took > shutdownTime+time.Second {
				t.Errorf("%s: it ended after %s, want %s at most", name, took, shutdownTime)
			}
		})
	}
}

func TestARequestThatIsNeverFinishedIsCutOff(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sent   string
		within time.Duration
	}{
		"a body": {half, requestTimeout}, "a header": {"POST /publish HTTP/1.1\r\nHost: loc", headerTimeout},
		"a header without an end": {"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 2*maxHeaderBytes), headerTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			sender, hangUp := serve(t, http.HandlerFunc(echo))
			began := time.Now()
			go func() { _, _ = io.WriteString(sender, tt.sent) }()
			_, _ = io.Copy(io.Discard, sender)
			if took := time.Since(began); took > tt.within+time.Second {
				t.Errorf("%s: cut off after %s, want %s", name, took, tt.within)
			}
			hangUp()
		})
	}
}

// A redrive at a low rate takes hours. Only the client may end its answer.
func TestAnAnswerMayTakeLongerThanARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		sender, hangUp := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
				ended <- r.Context().Err()
			case <-time.After(10 * requestTimeout):
				ended <- nil
			}
		}))
		usecasetest.Must(io.WriteString(sender, half+" whole"))(t)
		go func() { _, _ = io.Copy(io.Discard, sender) }()
		if err := <-ended; err != nil {
			t.Errorf("the request's context ended: %v", err)
		}
		hangUp()
	})
}
