package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// maxConnections is how many connections a sink opens at most. A Lambda function handles one turn
// at a time and so has one; the others wait for theirs.
const maxConnections = 4

// Ages of a connection that waits.
const (
	// unseen is after how long it is looked at before it is used.
	unseen = time.Second
	// stale is after how long it is given up: a load balancer may have dropped it and say nothing.
	stale = time.Minute
)

// errBusy says that the context ended while every connection was in use.
var errBusy = errors.New("all connections are in use")

// pool keeps connections between requests. It is safe for concurrent use.
type pool struct {
	open  func(context.Context) (*pgconn.PgConn, error)
	slots chan struct{} // one for each connection

	mu     sync.Mutex
	idle   []idle // the one used last is the last
	closed bool
}

type idle struct {
	conn  *pgconn.PgConn
	since time.Time
}

func newPool(open func(context.Context) (*pgconn.PgConn, error)) pool {
	return pool{open: open, slots: make(chan struct{}, maxConnections)}
}

// get returns a connection that seems to work. Give it back with put.
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
		if age < unseen || age < stale && last.conn.Ping(ctx) == nil {
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

// put gives a connection back. A broken connection is already closed, and is dropped.
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
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = conn.Close(ctx) // nothing is left to do on it
}
