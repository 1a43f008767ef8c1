package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lullhq/lull/sink"
)

const sinksHead = `# Sinks

For developers who choose where documents go: one page for each kind of sink. The
[glossary](../glossary.md) defines the words. The kinds themselves write this table
(` + "`go test ./internal/config -run TestSettingsDocument -update`" + `).

| kind | what it is | compares versions | documents a request | ` + "`auth.kind`" + ` | page |
|---|---|---|---|---|---|
`

const sinksFoot = `
- **Compares versions:** the engine itself refuses what is older than what it holds. Where it does
  not, lull's lease alone keeps the order, and is longer by ` + "`applyDelay`" + `.
- **Documents a request:** the default of ` + "`bulkDocuments`" + `.
- A stack may have several sinks, and ` + "`collections.NAME.sink`" + ` says which one a collection
  goes to. It may go to [several](../fan-out.md).
- Any kind takes a ceiling: ` + "`maxDocumentsPerSecond`" + ` and ` + "`maxConcurrency`" + `
  ([a ceiling](../lifecycles.md#a-ceiling)).
- [Answers](../answers.md) says what each answer of an engine becomes. For a kind of your own, see
  [package sink](../../sink/doc.go) and [the example](../../examples/outoftree/README.md).

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
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", name, strings.TrimSuffix(k.Doc, "."), compares(s), documents,
			auth, page)
	}
	return b.String() + sinksFoot
}

// compares says whether a sink has versions as it comes, and where that is said.
func compares(s Sink) string {
	yes, asked := true, s
	asked.Versions = &yes
	switch has := s.Capabilities().Versions; {
	case has:
		return "yes"
	case asked.Capabilities().Versions:
		return "with `versions: true`"
	}
	return "no"
}
