//go:build browser

package browser

import (
	"os"
	"path/filepath"
	"testing"
)

func TestADocumentLeadsToItsDeadLetters(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	s.publish(`{"type":"doc.changed","subject":"bad","sequence":"1","data":[]}` + "\n" +
		`{"type":"doc.changed","subject":"worse","sequence":"1","data":[]}` + "\n" +
		`{"type":"doc.changed","subject":"good","sequence":"1","data":{}}`)
	s.written(1)
	p := open(t, s.address)
	p.load("#/documents/content%23bad")
	p.until(`[...document.querySelectorAll("main a")].some((a) => a.textContent === "Redrive or drop them" && (a.click(), true))`)
	p.until(`document.querySelector("#title").textContent === "Dead letters" &&
		document.querySelectorAll("main tbody tr").length === 1 &&
		document.querySelector("#dead-key").value === "content#bad"`)
	p.quiet()
}

// If two messages have the same version, the page shows them in two lanes, because their outcomes
// differ.
func TestMessagesOfOneVersionHaveLanesOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	one := `{"type":"doc.changed","subject":"twice","sequence":"3","data":{"n":1}}`
	s.publish(one + "\n" + one + "\n" + `{"type":"doc.changed","subject":"twice","sequence":"2","data":{}}`)
	s.written(1)
	p := open(t, s.address)
	p.load("#/documents/content%23twice")
	// Each message has its own flight, and the flights may end in any order.
	p.until(`((lanes, text) => text(".outcome") === "duplicate; superseded; written and committed" && text(".nth") === "; 1 of 2; 2 of 2" &&
		lanes.filter((l) => l.querySelector(".version").textContent === "3" && l.querySelector(".nth")).length === 2)(
		[...document.querySelectorAll(".lanes li")],
		(part) => [...document.querySelectorAll(".lanes li")].map((l) => l.querySelector(part)?.textContent.replace(/, .*/, "") || "").sort().join("; "))`)
	p.quiet()
}

// When the numbers in a list change, the focus of the user does not move.
func TestTheFocusStaysWhereItIsWhileNumbersChange(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	p := open(t, s.address)
	p.load("#/documents")
	p.until(`[...document.querySelectorAll(".chip")].some((c) => /waiting/.test(c.textContent) && (c.focus(), true))`)
	s.publish(`{"type":"doc.changed","subject":"first","sequence":"1","data":{}}`)
	p.until(`[...document.querySelectorAll(".chip")].some((c) => /fresh 1/.test(c.textContent)) &&
		document.activeElement.matches(".chip") && /waiting 0/.test(document.activeElement.textContent)`)
	p.quiet()
}

// A document of a collection with several sinks shows its state in each sink. Each sink has a page.
func TestADocumentIsShownForEachOfItsSinks(t *testing.T) {
	t.Parallel()
	settings := filepath.Join(t.TempDir(), "lull.yaml")
	if err := os.WriteFile(settings, []byte(`
collections: {content: {sinks: [search, vectors]}}
queues: {live: {batch: 10, window: 0s}, bulk: {batch: 10, window: 0s}, burstSpread: 1s}
defaultSink: search
sinks: {search: {kind: bleve}, vectors: {kind: bleve}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, "", "--config", settings)
	s.publish(`{"type":"doc.changed","subject":"a","sequence":"1","data":{}}`)
	s.written(2)
	p := open(t, s.address)
	p.load("#/documents/content%23a")
	p.until(`[...document.querySelectorAll("caption")].some((c) => c.textContent === "What follows is about the sink search" &&
		c.closest("table").querySelectorAll("tbody tr").length === 2) &&
		[...document.querySelectorAll("main a")].some((a) => a.textContent === "vectors" && (a.click(), true))`)
	p.until(`document.querySelector("#title").textContent === "content@vectors#a" &&
		document.querySelector("main").textContent.includes("This is about the sink vectors alone")`)
	p.until(`[...document.querySelectorAll("main a")].some((a) => a.textContent === "All sinks of this document" && (a.click(), true))`)
	p.until(`document.querySelector("#title").textContent === "content#a"`)
	p.quiet()
}
