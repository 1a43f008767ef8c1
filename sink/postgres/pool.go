// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// maxConnections is how many connections a sink opens at most. A Lambda function handles one turn
// at a time, and so opens one connection. In other programs, further requests wait for a free
// connection.
const maxConnections = 4

// Limits for how long a connection has been idle.
const (
	// checkAfter is the time after which get checks an idle connection before use.
	checkAfter = time.Second
	// dropAfter is the time after which get closes an idle connection. A load balancer may have
	// dropped the connection without a message.
	dropAfter = time.Minute
)

// errBusy says that the context ended while every connection was in use.
var errBusy = errors.New("all connections are in use")

// pool keeps open connections between requests. A pool is safe for concurrent use.
type pool struct {
	open  func(context.Context) (*pgconn.PgConn, error)
	slots chan struct{} // one for each connection

	mu     sync.Mutex
	idle   []idle // in order of use; the last one was used last
	closed bool
}

type idle struct {
	conn  *pgconn.PgConn
	since time.Time
}

func newPool(open func(context.Context) (*pgconn.PgConn, error)) pool {
	return pool{open: open, slots: make(chan struct{}, maxConnections)}
}

// get returns a connection that seems to work. The caller returns the connection with put.
func (p *pool) get(ctx context.Context) (*pgconn.PgConn, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, errBusy
	}
	for {
		last, ok := p.take()
		if !ok {
			break
		}
		age := time.Since(last.since)
		if age < checkAfter || age < dropAfter && last.conn.Ping(ctx) == nil {
			return last.conn, nil
		}
		bye(last.conn)
	}
	conn, err := p.open(ctx)
	if err != nil {
		<-p.slots
	}
	return conn, err
}

func (p *pool) take() (last idle, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		last, ok = p.idle[n-1], true
		p.idle = p.idle[:n-1]
	}
	return last, ok
}

// put returns a connection to the pool. A broken connection is already closed, and put drops it.
func (p *pool) put(conn *pgconn.PgConn) {
	p.mu.Lock()
	keep := !p.closed && !conn.IsClosed()
	if keep {
		p.idle = append(p.idle, idle{conn, time.Now()})
	}
	p.mu.Unlock()
	if !keep {
		bye(conn)
	}
	<-p.slots
}

func (p *pool) close() {
	p.mu.Lock()
	all := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, i := range all {
		bye(i.conn)
	}
}

func bye(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = conn.Close(ctx) // the connection is not used any more
}
