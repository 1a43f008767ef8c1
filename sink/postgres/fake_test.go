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

// statement is one that a fake server got: its text and, of the write, what each document is.
type statement struct {
	text string
	ids  []string
	puts int // of the documents
}

// fake is a server that speaks the protocol and answers as a test says.
type fake struct {
	// certificate lets it encrypt. Nil means that it does not.
	certificate *tls.Certificate
	// login answers a connection. Nil lets it in.
	login func(*pgproto3.Backend)
	// answer says what becomes of a write: the code of an error with the severity ERROR; "" for done.
	answer func(statement) string
	// keeps says that no row is written: each has a greater fence.
	keeps bool
	// instead takes the whole connection over once a write has come.
	instead func(*pgproto3.Backend, net.Conn)
	// commits is the code with which the commit of a document fails, after the write's rows were told.
	commits string
	// creates is the code with which making a table fails.
	creates string

	mu         sync.Mutex
	statements []string
}

// start returns the address of a database on the fake.
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

// failure is an error as PostgreSQL tells it, with content in its text.
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

// texts reads an array of texts in binary, and counts those that are not NULL.
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
