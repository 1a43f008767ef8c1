// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
)

func TestBodiesAreShownEscapedAndByteForByteAsJSON(t *testing.T) {
	t.Parallel()
	const bad = "{\"subject\":\t\"a\",\t\"x\xff\xfey\":\t1}"
	const good = "{\"type\":\"doc.changed\",\"subject\":\"b\",\"sequence\":1,\"data\":{\"a\":\t1.10,\t\"b\":\t1E400}}"
	s := start(t, strings.NewReader(bad+"\n"+good+"\n"), "--events", "-", "--speed", "100")
	s.out.await(t, "everything has settled")
	ask := func(args ...string) answer { return lull(t, "", append(args, "--dev", s.url)...) }
	letters := parsed[[]operate.Letter](t, ask("dead", "list", "-o", "json"))
	if len(letters) != 1 {
		t.Fatalf("dead letters %+v, want one", letters)
	}
	id := letters[0].ID
	ask("dead", "show", id).want(t, "a letter", exitOK, "\n\n"+strings.ReplaceAll(strings.ReplaceAll(bad, "\xff", `\xff`), "\xfe", `\xfe`)+"\n")
	if l := parsed[operate.Letter](t, ask("dead", "show", id, "-o", "json")); l.Body != bad {
		t.Errorf("as JSON: %q, want %q", l.Body, bad)
	}
	type raw struct {
		Body   *string
		Base64 []byte `json:"body_base64"`
	}
	if plain := parsed[raw](t, ask("dead", "show", id, "-o",
		"json")); plain.Body != nil || string(plain.Base64) != bad {
		t.Errorf("for people: %+v, want the body in base64", plain)
	}
	// JSON on the wire: no white space, every digit
	ask("get", "content#b").want(t, "a document", exitOK, "\n\n{\"a\":1.10,\"b\":1E400}\n")
	if got := lull(t, bad, "publish", "--dev", s.url); got.code != exitRefused ||
		!strings.Contains(got.errors, "UTF-8") {
		t.Errorf("publish what is not UTF-8: %+v, want a refusal", got)
	}
}
