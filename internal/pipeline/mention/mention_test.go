// SPDX-License-Identifier: Apache-2.0

package mention_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/pipeline/mention"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/queue"
)

func packed(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func gz(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

// wrapped breaks a text into lines, as MIME does.
func wrapped(text string) string {
	var lines []string
	for line := range slices.Chunk([]byte(text), 76) {
		lines = append(lines, string(line))
	}
	return strings.Join(lines, "\r\n")
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

func TestAMessageIsAskedForADocument(t *testing.T) {
	t.Parallel()
	rig := usecasetest.Open(t, nil)
	const id = "alice/1 é"
	put := func(id string) string { return strings.ReplaceAll(usecasetest.Put("x", 1), `"x"`, quoted(id)) }
	rabbit := func(events ...string) string {
		for i, e := range events {
			events[i] = `{"basicProperties":{},"data":"` + packed(e) + `"}`
		}
		return `{"eventSource":"aws:rmq","rmqMessagesByQueue":{"q::/":[` + strings.Join(events, ",") + `]}}`
	}
	cut := strings.TrimSuffix(put(id), "}")
	// base64 breaks this text in the id, because MIME lines are short
	long := strings.Repeat("x", 53) + id + strings.Repeat("y", 53)
	for name, tt := range map[string]struct {
		body string
		want mention.Answer
	}{
		"an event of the document":                          {put(id), mention.Holds},
		"an event of another document":                      {put("bob"), mention.Nothing},
		"another document's event, with the id in its data": {strings.Replace(put("bob"), "v1", id, 1), mention.Nothing},
		"one event of several":                              {rabbit(put("bob"), put(id)), mention.Holds},
		"an event of the document without a version": {
			rabbit(put("bob"), strings.Replace(put(id), `"sequence"`, `"s"`, 1)), mention.Holds,
		},
		"not JSON":                         {cut, mention.Named},
		"not JSON, about another document": {strings.TrimSuffix(put("bob"), "}"), mention.Unclear},
		"base64 after a name":              {"payload=" + packed(cut), mention.Named},
		"base64 after a prefix":            {"v1/" + packed(cut), mention.Named},
		"base64 after a word":              {"tenant-" + packed(cut), mention.Named},
		"not JSON in base64":               {rabbit(put("bob"), cut), mention.Named},
		"twice in base64":                  {`{"` + packed(packed(cut)), mention.Named},
		"base64 for URLs, unpadded": {
			`{"` + strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(packed(cut)), "="), mention.Named,
		},
		"escaped": {
			`{"` + strings.ReplaceAll(strings.ReplaceAll(cut, "é", `\u00e9`), "/", `\/`), mention.Named,
		},
		"JSON in JSON":                    {`{` + quoted(quoted(strings.ReplaceAll(cut, "a", `\u0061`))), mention.Named},
		"in a URL":                        {`{"alice%2F1%20%C3%A9`, mention.Named},
		"a form":                          {`{"alice%2F1+%C3%A9`, mention.Named},
		"in a URL, lower-case escapes":    {`{"alice%2f1%20%c3%a9`, mention.Named},
		"in a URL, escapes of both cases": {`{"alice%2f1%20%C3%a9`, mention.Named},
		"in a URL, needless escapes":      {`{"%61lice/1%20%C3%A9`, mention.Named},
		"in a URL in a URL":               {`{"alice%252F1%2520%25C3%25A9`, mention.Named},
		"a key of S3":                     {`{"alice/1+%C3%A9`, mention.Named},
		"between broken escapes":          {`{"%zz100%alice%2F1%20%C3%A9%`, mention.Named},
		"another document's URL":          {`{"alice%2f2%20%c3%a9`, mention.Unclear},
		"base64 in lines":                 {`{"` + wrapped(packed(long)), mention.Named},
		"base64 in escaped lines":         {`{"` + strings.ReplaceAll(wrapped(packed(long)), "\r\n", `\r\n`), mention.Named},
		"gzip":                            {`{"` + packed(gz(cut)), mention.Named},
		"gzip that is cut off":            {`{"` + packed(gz(cut))[:120], mention.Named},
		"gzip of another document":        {`{"` + packed(gz(strings.TrimSuffix(put("bob"), "}"))), mention.Unclear},
		"more work than is allowed":       {strings.Repeat(`\u005c`, 1<<17), mention.Unclear},
	} {
		m := queue.Message{Body: tt.body}
		if got := mention.In(rig.Sources, "search", m, usecasetest.Doc(id)); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
		m.Attributes = map[string]queue.Attribute{queue.AttrEvent: queue.Text("0")}
		if got := mention.In(rig.Sources, "search", m, usecasetest.Doc(id)); got != tt.want {
			t.Errorf("%s, a copy for its first event: got %d, want %d", name, got, tt.want)
		}
	}
	for name, a := range map[string]queue.Attribute{
		"a text": queue.Text(id), "bytes": {Type: "Binary", Binary: []byte(id)},
	} {
		m := queue.Message{Body: "{", Attributes: map[string]queue.Attribute{"x": a}}
		if got := mention.In(rig.Sources, "search", m, usecasetest.Doc(id)); got != mention.Named {
			t.Errorf("the id in an attribute, as %s: got %d, want it named", name, got)
		}
	}
}

// A newer lull may pack the message of a dead letter in a way that this build cannot unpack.
func TestADeadLetterOfANewerLullMayHoldAnything(t *testing.T) {
	t.Parallel()
	rig := usecasetest.Open(t, nil)
	for name, tt := range map[string]struct {
		body string
		want mention.Answer
	}{
		"packed":                       {"KLUv/SAgAQEAAAAAAAAA", mention.Named},
		"an event of the document":     {usecasetest.Put("alice", 1), mention.Holds},
		"an event of another document": {usecasetest.Put("bob", 1), mention.Nothing},
		"another document's event, with facts that name the document": {usecasetest.Put("bob", 1) + " ", mention.Named},
	} {
		facts := `{"schema":"9","reason":"rejected"}`
		if name == "another document's event, with facts that name the document" {
			facts = `{"schema":"9","attributes":{"x":{"string":"` + packed("about alice, and others") + `"}}}`
		}
		m := queue.Message{Body: tt.body, Attributes: map[string]queue.Attribute{queue.AttrLetter: queue.Text(facts)}}
		if got := mention.In(rig.Sources, "search", m, usecasetest.Doc("alice")); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

// Each level of base64 is searched, and a hostile body may have many levels. If the search takes
// too long, the message counts as one that names the document.
func TestTheSearchEnds(t *testing.T) {
	t.Parallel()
	rig := usecasetest.Open(t, nil)
	body := strings.Repeat(`\\`, 1<<19)
	m := queue.Message{Body: body, Attributes: map[string]queue.Attribute{}}
	for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		m.Attributes[name] = queue.Attribute{Type: "String", String: body}
	}
	if got := mention.In(rig.Sources, "search", m, usecasetest.Doc("alice")); got != mention.Named {
		t.Errorf("got %d, want a message that names the document", got)
	}
}
