// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/local/memory"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/shard"
)

var update = flag.Bool("update", false, "write testdata/answers.txt")

// random matches the parts of an answer that differ each time.
var random = regexp.MustCompile(`"token":"[^"]*"|"owner":"[^"]*"|"id":"01[0-9A-Z]{24}"`)

// answersOf asks the questions of a text again: its lines that begin with "> ", the name of an
// operation and its JSON. It returns the text with the answers of a stack whose clock stands still.
func answersOf(t *testing.T, text string) string {
	t.Helper()
	g := setup(t)
	g.Archive = memory.NewArchive(g.Clock, time.Hour)
	g.Flow = func(context.Context) (operate.Flow, error) { return operate.Flow{Span: time.Minute, In: 1.5}, nil }
	done := g.rig.EventOf(put("done", 1))
	g.rig.Write(shard.Admit(shard.Admission{
		Doc: done.Doc, Key: done.Key, Class: done.Class, Flight: "e", Now: micros(),
	}))
	g.commit(done, `{"title":"vienna <b>"}`)
	g.hold("f", put("waits", 2))
	g.die(put("ill", 3), deadletter.RejectedBySink)
	h := operate.Handler(g.API())
	var b strings.Builder
	for line := range strings.Lines(text) {
		question, is := strings.CutPrefix(line, "> ")
		if !is {
			continue
		}
		name, body, _ := strings.Cut(strings.TrimSuffix(question, "\n"), " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/operate/"+name, strings.NewReader(body)))
		answer := random.ReplaceAllString(w.Body.String(), "DIFFERS")
		fmt.Fprintf(&b, "%s%d %s\n%s\n", line, w.Code, w.Header().Get("Content-Type"), answer)
	}
	return b.String()
}

// The answers of every operation, and its errors, stay the same byte for byte on the wire.
func TestTheAnswersOnTheWireStayTheSame(t *testing.T) {
	t.Parallel()
	const file = "testdata/answers.txt"
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	synctest.Test(t, func(t *testing.T) { got = answersOf(t, string(want)) })
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(want) {
		t.Errorf("the answers changed: run `go test -update` and look at the difference of %s", file)
	}
	for op := range reflect.TypeFor[operate.API]().Fields() {
		if name := op.Tag.Get("wire"); name != "" && !strings.Contains(got, "\n> "+name+" {") {
			t.Errorf("%s: no question asks for %s", file, name)
		}
	}
}
