// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/postgres"
	"github.com/lullhq/lull/sink/sinktest"
)

// serverVariable is the environment variable with the address of a real PostgreSQL, such as
// postgres://127.0.0.1:5440/postgres. The user in the address must have the right to create
// schemas. make e2e-sinks starts such a server.
const serverVariable = "LULL_TEST_POSTGRES"

// real returns a sink on the server with a separate schema, which is dropped afterwards.
func real(t *testing.T, change func(*postgres.Options)) *postgres.Sink {
	t.Helper()
	url := os.Getenv(serverVariable)
	if url == "" {
		t.Skipf("%s is not set: no PostgreSQL to test against", serverVariable)
	}
	o := postgres.Options{URL: url, Index: "lull-{collection}"}
	o.TLS, o.User, o.Schema = "off", "postgres", "lull_test_"+strings.ToLower(rand.Text()[:12])
	if change != nil {
		change(&o)
	}
	s, err := postgres.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Run(t, "CREATE SCHEMA "+o.Schema)
	if o.Vector.Field != "" { // Prepare creates the extension
		if err := s.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		s.Run(t, "DROP SCHEMA "+o.Schema+" CASCADE")
		_ = s.Close()
	})
	return s
}

func TestRealServer(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, sinktest.Options{
		New:          func(t *testing.T) sinktest.Sink { return real(t, nil) },
		Capabilities: sink.Capabilities{Versions: true, Generation: true},
		Recreate: func(t *testing.T, s sinktest.Sink) sinktest.Sink {
			engine, _ := s.(*postgres.Sink)
			engine.Run(t, `DROP TABLE `+engine.Schema+`."lull-content"`)
			return s
		},
	})
}
