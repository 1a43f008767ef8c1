// SPDX-License-Identifier: Apache-2.0

package govuk_test

import (
	"encoding/json"
	"testing"

	_ "github.com/lullhq/lull/source/govuk"
	"github.com/lullhq/lull/source/sourcetest"
)

var options = sourcetest.Options{Settings: `
sources:
  govuk: {kind: govuk}
  govuk-own:
    kind: govuk
    govuk: {ignoreTypes: [secret], ignorePrefixes: [], overridePaths: [/open/*/x], locales: [cy]}
  govuk-two: {kind: govuk, govuk: {locales: [en, cy, zh-Hant]}}
defaultSource: govuk
`}

func TestSource(t *testing.T) { sourcetest.Run(t, options) }

func FuzzDecode(f *testing.F) { sourcetest.Fuzz(f, options) }

func TestDocumentIsTextOnly(t *testing.T) {
	t.Parallel()
	set := sourcetest.New(t, options.Settings)
	tests := []struct{ name, html, want string }{
		{"blocks part words", "<h2>One</h2><p>two</p>three<br>four<br/>five", "One two three four five"},
		{"inline elements do not", "t<b>w</b>o <a href='x'>l<i>in</i>k</a>s", "two links"},
		{"entities", "a &amp; b &lt;c&gt; &#233; &nbsp; d", "a & b <c> é d"},
		{"white space", "  a\n\n\t b \u00a0 c  ", "a b c"},
		{"scripts", "a<script>if (1 < 2) { '</p>' }</script>b<STYLE>p{}</STYLE>c", "a b c"},
		{"script that never ends", "a<script>b", "a"},
		{"script with a slash", "a<script/>b</script>c", "a c"},
		{"comments", "a<!-- b --> c", "a c"},
		{"a lone bracket", "a < b", "a < b"},
		{"tags that are not closed", "<p>a<p>b<li", "a b"},
		{"table", "<table><tr><td>a</td><td>b</td></tr></table>", "a b"},
		{"no text", "<p></p>", ""},
	}
	for _, tt := range tests {
		body, err := json.Marshal(map[string]any{
			"content_id": "c", "payload_version": "1", "document_type": "guide", "base_path": "/x",
			"details": map[string]any{"body": tt.html},
		})
		if err != nil {
			t.Fatalf("write the message: %v", err)
		}
		m := sourcetest.Message("govuk", string(body))
		doc, err := set.Document(m, set.Decode(m)[0].Event)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var got struct{ Text string }
		if err := json.Unmarshal(doc, &got); err != nil || got.Text != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got.Text, err, tt.want)
		}
	}
}
