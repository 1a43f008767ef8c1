// SPDX-License-Identifier: Apache-2.0

package enrich

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/lullhq/lull/sink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type says string

func (s says) Call(context.Context, []byte) ([]byte, error) { return []byte(s), nil }

func docs(ids ...string) (all []Document) {
	for _, id := range ids {
		all = append(all, Document{ID: id, Collection: "c", Version: "1", Inputs: json.RawMessage(`{"/title":"x"}`)})
	}
	return all
}

// Outcomes are matched by id, so the answer may have any order, and may omit, repeat or add
// documents.
func TestAnAnswerIsReadByItsIDs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked, answer, want string
	}{
		{"a b", `{"documents":[{"id":"b","fields":{"n":2}},{"id":"a","fields":{"n":1}}]}`, `enriched {"n":1}, enriched {"n":2}`},
		{"a b", `{"documents":[{"id":"b","fields":{}}]}`, "failed the answer leaves it out, enriched {}"},
		{"a", `{"documents":[]}`, "failed the answer leaves it out"},
		{"a b", `{"documents":[]}`, "! the answer has none of the documents that were asked for"},
		{"a", `{"documents":[{"id":"b","fields":{}}]}`, "! the answer has none of the documents that were asked for"},
		{"a", `{"documents":[{"id":"A","fields":{}}]}`, "! the answer has none of the documents that were asked for"},
		{"a", `{}`, "! the answer has none of the documents that were asked for"},
		{"a", `null`, "! the answer has none of the documents that were asked for"},
		{"a", ``, "! the answer is not the JSON of docs/enrich.md"},
		{"a", `[]`, "! the answer is not the JSON of docs/enrich.md"},
		{"a", `{"documents":[{"id":1}]}`, "! the answer is not the JSON of docs/enrich.md"},
		{"a", `{"documents":[{"id":"a","fields":{}}]} x`, "! the answer is not the JSON of docs/enrich.md"},
		{"a", strings.Repeat(`{"documents":`, 20_000), "! the answer is not the JSON of docs/enrich.md"},
		{"a b", `{"documents":[{"id":"a","fields":{}},{"id":"x","fields":{}},{"id":"a","error":{}},{"id":"b","fields":{}}]}`, "failed the answer has it more than once, enriched {} +1"},
		{"a", `{"documents":[{"id":"a","fields":{},"error":{"kind":"throttled","reason":"later"}}]}`, "throttled later"},
		{"a", `{"documents":[{"id":"a","error":{"kind":"rejected","reason":"no\u001b[31m\n text"}}]}`, "rejected no [31m text"},
		{"a", `{"documents":[{"id":"a","error":{"kind":"else"}}]}`, "failed "},
		{"a", `{"documents":[{"id":"a","fields":null}]}`, "failed the answer has neither fields nor an error for it"},
		{"a", `{"documents":[{"id":"a","fields":"x"}]}`, "failed the answer has neither fields nor an error for it"},
	} {
		a, failure := Ask(t.Context(), says(c.answer), docs(strings.Fields(c.asked)...))
		var got []string
		for _, o := range a.Outcomes {
			got = append(got, o.Kind.String()+" "+string(o.Fields)+o.Reason)
		}
		text := strings.Join(got, ", ")
		if a.Strange > 0 {
			text += fmt.Sprint(" +", a.Strange)
		}
		if failure != nil {
			text = "! " + failure.Reason
		}
		if text != c.want {
			t.Errorf("%.60s: got %s, want %s", c.answer, text, c.want)
		}
	}
}

// Within the limit of bytes, an answer may list millions of documents. Reading the answer must take
// about as much memory as its bytes. A function that runs out of memory would leave its leases
// unreleased.
func TestAnAnswerThatListsMillionsIsNotRead(t *testing.T) {
	text := `{"documents":[` + strings.Repeat(`{},`, MaxAnswer/3-10) + `{}]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, failure := Ask(t.Context(), says(text), docs("a"))
	runtime.ReadMemStats(&after)
	if failure == nil || failure.Reason != "the answer lists more than 10000 documents" {
		t.Errorf("got %v, want an error about the number of documents", failure)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 8*MaxAnswer {
		t.Errorf("an answer of %d bytes took %d bytes of memory", len(text), took)
	}
}

type fails struct{ error }

func (f fails) Call(context.Context, []byte) ([]byte, error) { return nil, f }

func TestAnErrorOfACallSaysNothingThatIsSecret(t *testing.T) {
	t.Parallel()
	_, f := Ask(t.Context(), fails{errors.New("POST https://host/?key=hunter2")}, docs("a"))
	if f == nil || strings.Contains(f.Error(), "hunter2") || !f.Smaller {
		t.Errorf("got %+v, want a failure without the error's text", f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, f = Ask(ctx, fails{ctx.Err()}, docs("a")); f == nil || f.Reason != "no answer in time" {
		t.Errorf("got %+v", f)
	}
}

func TestFieldsAreMergedAtTheTop(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ document, fields, want string }{
		{`{}`, `{}`, `{}`},
		{`{"a":1.50,"b":{"c":1}}`, `{ "d" : [1, 2] }`, `{"a":1.50,"b":{"c":1},"d":[1, 2]}`},
		{`{"a":1,"b":{"c":1,"d":2}}`, `{"b":{"c":3}}`, `{"a":1,"b":{"c":3}}`},
		{`{"a":1,"b":2}`, `{"a":null,"x":null}`, `{"b":2}`},
		{`{"a":1}`, `{"a":null}`, `{}`},
		{`{"a":1,"a":2}`, `{"a":3}`, `{"a":3}`},
		{`{"a":1}`, `{"b":1,"b":2}`, `{"a":1,"b":2}`},
		{`{"\u0061":1}`, `{"a":2}`, `{"\u0061":2}`},
		{`{"a":1}`, `{"q\"\u2028":1}`, `{"a":1,"q\"\u2028":1}`},
	} {
		got, err := Merge([]byte(c.document), json.RawMessage(c.fields))
		if err != nil || string(got) != c.want {
			t.Errorf("%s and %s: got %s, %v, want %s", c.document, c.fields, got, err, c.want)
		}
	}
	for _, fields := range []string{`{"_lull":{}}`, `{"\u005flull":null}`} {
		if got, err := Merge([]byte(`{"a":1}`), json.RawMessage(fields)); err == nil {
			t.Errorf("%s: got %s, want an error", fields, got)
		}
	}
}

func TestInputsAreWhatTheDocumentHas(t *testing.T) {
	t.Parallel()
	in, err := ParseInputs([]string{"/title", "/a/b", "/no", "/t~1x"})
	if err != nil {
		t.Fatal(err)
	}
	got := in.Of([]byte(`{"title":"T","a":{"b":[1.0]},"t/x":null,"secret":1}`))
	if want := `{"/title":"T","/a/b":[1.0],"/t~1x":null}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := in.Of([]byte(`{"b":1}`)); got != nil {
		t.Errorf("got %s, want no inputs", got)
	}
	whole, _ := ParseInputs([]string{""})
	if got := whole.Of([]byte(`{"b":1}`)); string(got) != `{"":{"b":1}}` {
		t.Errorf("got %s, want the whole document", got)
	}
}

// For any document and fields, Merge returns a document that a sink can hold, or an error.
func FuzzMerge(f *testing.F) {
	f.Add(`{"a":1,"b":[{"c":"\ud800"}]}`, `{"a":null,"_lull ":1,"":{}}`)
	f.Fuzz(func(t *testing.T, document, fields string) {
		plain, fault := sink.Plain([]byte(document))
		if fault != nil || !json.Valid([]byte(fields)) || fields[0] != '{' {
			return
		}
		got, err := Merge(plain, json.RawMessage(fields))
		if err != nil {
			return
		}
		if _, fault := sink.Plain(got); fault != nil && fault.Class != sink.NotUTF8 {
			t.Errorf("Merge of %s and %s returned %s: %v", plain, fields, got, fault)
		}
	})
}
