// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
)

// A stalled server has not read the whole request when the client hangs up. The client must discard
// the unsent bytes, so that the server never gets the whole request.
func TestHangingUpDropsWhatIsNotSent(t *testing.T) {
	t.Parallel()
	const size = 1 << 20 // less than the client buffers, and more than the buffer of a server that reads nothing
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			accepted <- conn
		}
		close(accepted)
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// At this moment the client has given the whole request to the kernel.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { cancel() },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+listener.Addr().String(),
		strings.NewReader(strings.Repeat("x", size)))
	if err != nil {
		t.Fatal(err)
	}
	transport := NewTransport()
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
		t.Fatal("a server that says nothing has answered")
	}
	server := <-accepted
	defer server.Close()
	if n, _ := io.Copy(io.Discard, server); n >= size {
		t.Errorf("the server got %d bytes, which is the whole request", n)
	}
}
