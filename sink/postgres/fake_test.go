// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// statement is a statement that a fake server received: its text and, if it is a write, its
// documents.
type statement struct {
	text string
	ids  []string
	puts int // how many of the documents are puts
}

// fake is a server that understands PostgreSQL's protocol and answers as a test says.
type fake struct {
	// certificate is the certificate for TLS. Nil means that the server does not support TLS.
	certificate *tls.Certificate
	// login answers a new connection. Nil accepts the connection.
	login func(*pgproto3.Backend)
	// answer returns the code of the error with the severity ERROR that a write gets. "" means
	// success.
	answer func(statement) string
	// keeps says that no row is written, because each existing row has a greater fence.
	keeps bool
	// instead takes over the connection when a write has arrived.
	instead func(*pgproto3.Backend, net.Conn)
	// commits is the code with which the commit fails, after the rows of the write were sent.
	commits string
	// creates is the code with which creating a table fails.
	creates string

	mu         sync.Mutex
	statements []string
}

// start starts the fake and returns the address of a database on it.
func (f *fake) start(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	var conns []net.Conn
	var mu sync.Mutex
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			open.Go(func() {
				defer conn.Close()
				f.serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		open.Wait()
	})
	return "postgres://" + listener.Addr().String() + "/search"
}

func (f *fake) serve(conn net.Conn) {
	b := pgproto3.NewBackend(conn, conn)
	m, err := b.ReceiveStartupMessage()
	if err != nil {
		return
	}
	switch m.(type) {
	case *pgproto3.SSLRequest:
		if f.certificate == nil {
			_, _ = conn.Write([]byte("N"))
			return
		}
		_, _ = conn.Write([]byte("S"))
		conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*f.certificate}})
		b = pgproto3.NewBackend(conn, conn)
		if m, err = b.ReceiveStartupMessage(); err != nil {
			return
		}
	}
	if _, ok := m.(*pgproto3.StartupMessage); !ok {
		return
	}
	if f.login != nil {
		f.login(b)
		_ = b.Flush()
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if b.Flush() != nil {
		return
	}
	var pending []statement
	for {
		m, err := b.Receive()
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *pgproto3.Parse:
			pending = append(pending, statement{text: m.Query})
		case *pgproto3.Bind:
			s := &pending[len(pending)-1]
			if len(m.Parameters) == 6 {
				s.ids, _ = texts(m.Parameters[0])
				_, s.puts = texts(m.Parameters[5])
			}
		case *pgproto3.Query:
			f.note(m.String)
			f.respond(b, []statement{{text: m.String}})
		case *pgproto3.Sync:
			write := pending[len(pending)-1]
			f.note(write.text)
			if f.instead != nil && write.ids != nil {
				f.instead(b, conn)
				return
			}
			f.respond(b, pending)
			pending = nil
		case *pgproto3.Terminate:
			return
		}
		if b.Flush() != nil {
			return
		}
	}
}

func (f *fake) note(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.statements = append(f.statements, text)
}

func (f *fake) respond(b *pgproto3.Backend, all []statement) {
	for _, s := range all {
		code := ""
		if s.ids != nil && f.answer != nil {
			code = f.answer(s)
		}
		if strings.HasPrefix(s.text, "CREATE TABLE") {
			code = f.creates
		}
		if code != "" {
			b.Send(failure("ERROR", code))
			break
		}
		b.Send(&pgproto3.ParseComplete{})
		b.Send(&pgproto3.BindComplete{})
		id := pgproto3.FieldDescription{Name: []byte("id"), DataTypeOID: 25, DataTypeSize: -1}
		b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{id}})
		for _, id := range s.ids {
			if f.keeps {
				break
			}
			b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte(id)}})
		}
		b.Send(&pgproto3.CommandComplete{CommandTag: []byte("INSERT 0 1")})
		if s.puts > 0 && f.commits != "" {
			b.Send(failure("ERROR", f.commits))
		}
	}
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
}

// failure returns an error in the form of PostgreSQL, whose text quotes content.
func failure(severity, code string) *pgproto3.ErrorResponse {
	e := &pgproto3.ErrorResponse{
		Severity: severity, SeverityUnlocalized: severity, Code: code, Message: "it says secret",
	}
	switch {
	case code == "42703":
		e.Message = `column "fence" of relation "lull-content" does not exist, secret`
	case code[:2] == "23":
		e.ConstraintName = "mine"
	}
	return e
}

// texts decodes an array of texts in binary format. set is how many of the texts are not NULL.
func texts(array []byte) (all []string, set int) {
	all = []string{}
	for at := 20; at+4 <= len(array); {
		n := int32(binary.BigEndian.Uint32(array[at:]))
		at += 4
		if n < 0 {
			all = append(all, "")
			continue
		}
		all, set = append(all, string(array[at:at+int(n)])), set+1
		at += int(n)
	}
	return all, set
}
