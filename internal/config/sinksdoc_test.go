// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lullhq/lull/sink"
)

const sinksHead = `# Sinks

For developers who choose where documents go: one page for each kind of sink. The
[glossary](../glossary.md) defines the words. The kinds themselves write this table
(` + "`go test ./internal/config -run TestSettingsDocument -update`" + `).

| kind | what it is | compares versions | ` + "`unchanged: keep`" + ` | documents a request | ` + "`auth.kind`" + ` | page |
|---|---|---|---|---|---|---|
`

const sinksFoot = `
- **Compares versions:** the engine itself refuses an older version. If the engine does not, only
  lull's lease keeps the order, and the lease is longer by ` + "`applyDelay`" + `.
- ` + "**`unchanged: keep`:**" + ` the kind tells its index from another one of that name, so lull can
  leave out [writes that change
  nothing](../choose-settings.md#is-much-of-it-published-again-without-a-change).
- lull never hides or changes your own alias, template or index.
- **Documents a request:** the default of ` + "`bulkDocuments`" + `.
- Any kind takes [a ceiling](../lifecycles.md#a-ceiling). A collection may go to [several
  sinks](../fan-out.md).
- [Answers](opensearch.md#answers) says what lull does with each answer of an engine. For your
  own kind, see [package sink](../../sink/doc.go) and [the
  example](../../examples/outoftree/README.md).

Next: [settings](../settings.md#sinks), or [deploy](../deploy.md).
`

// sinksDocument renders docs/sinks/README.md.
func sinksDocument() string {
	var b strings.Builder
	b.WriteString(sinksHead)
	for _, name := range sink.Kinds() {
		k, _ := sink.Lookup(name)
		s := completeSink(newSink(name))
		documents := fmt.Sprint(s.BulkDocuments)
		if s.Capabilities().MaxDocuments == s.BulkDocuments {
			documents += ", and no more"
		}
		page := fmt.Sprintf("[%s](%s.md)", name, name)
		if _, err := os.Stat(filepath.Join("..", "..", "docs", "sinks", name+".md")); err != nil && !k.Deployable() {
			page = "for tests"
		}
		auth := "none"
		if k.Deployable() {
			auth = strings.ReplaceAll("none or "+join(k.Authentications()), " or ", ", ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", name, strings.TrimSuffix(k.Doc, "."), compares(s),
			keeps(s), documents, auth, page)
	}
	return b.String() + sinksFoot
}

// compares says whether a sink with the defaults of its kind compares versions, and which settings
// change that.
func compares(s Sink) string {
	yes, asked := true, s
	asked.Versions = &yes
	switch has := s.Capabilities().Versions; {
	case has:
		return "yes" + except(s, func(c sink.Capabilities) bool { return c.Versions })
	case asked.Capabilities().Versions:
		return "with `versions: true`"
	}
	return "no"
}

// keeps says whether a sink of the kind may have unchanged: keep.
func keeps(s Sink) string {
	able := func(c sink.Capabilities) bool { return c.Generation }
	if able(s.Capabilities()) {
		return "yes" + except(s, able)
	}
	return "with `generation`"
}

// except names the flags of the kind that remove a capability of its sinks.
func except(s Sink, able func(sink.Capabilities) bool) (flags string) {
	kind := reflect.ValueOf(s.Options)
	if !kind.IsValid() {
		return ""
	}
	for i := range kind.NumField() {
		if kind.Field(i).Kind() != reflect.Bool {
			continue
		}
		options := reflect.New(kind.Type()).Elem()
		options.Set(kind)
		options.Field(i).SetBool(true)
		if s.Options = options.Interface(); !able(s.Capabilities()) {
			flags += ", but not with `" + kind.Type().Field(i).Tag.Get("json") + ": true`"
		}
	}
	return flags
}

// Only the table of kinds lists the capabilities of kinds. Other pages link to that table.
func TestPagesLeaveTheKindsToTheirTable(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"limits.md", "faq.md", "choose-settings.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "(sinks/README.md)") {
			t.Errorf("docs/%s: got no link to the table of the kinds", page)
		}
	}
}
