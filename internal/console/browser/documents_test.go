// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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
	// Each message has its own flight, and the flights may end in any order. On a slow machine,
	// version 2 may be written before version 3 arrives.
	p.until(`((lanes, text) => lanes.length === 3 && text(".outcome", "3") === "duplicate; written and committed" &&
		text(".nth", "3") === "1 of 2; 2 of 2" && text(".nth", "2") === "")(
		[...document.querySelectorAll(".lanes li")],
		(part, version) => [...document.querySelectorAll(".lanes li")].
			filter((l) => l.querySelector(".version").textContent === version).
			map((l) => l.querySelector(part)?.textContent.replace(/, .*/, "") || "").sort().join("; "))`)
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

// chips are the filters by state, as "name count".
const chips = `[...document.querySelectorAll(".chip")].map((c) => c.textContent)`

// The filters count what the lists have, and a list keeps the counts of the others. A document has
// the same state, and waits for the same cause, in the list and on its page.
func TestADocumentHasOneStateEverywhere(t *testing.T) {
	t.Parallel()
	s := start(t, seed())
	s.written(seeded)
	s.breakSink()
	s.publish(put("page-01", "7", "It waits", "") + put("page-02", "7", "It waits", ""))
	p := open(t, s.address)
	p.load("#/documents")
	p.until(`(` + chips + `).includes("waiting 3")`)
	counts := func() (all, sum int) {
		for i, n := range value[[]int](p, chips+`.map((c) => Number(c.match(/[0-9,]+$/)?.[0]))`) {
			if i == 0 {
				all = n
			} else {
				sum += n
			}
		}
		return all, sum
	}
	if all, sum := counts(); all != 42 || sum != all {
		t.Errorf("all counts %d, and the states %d, want 42", all, sum)
	}
	for chip, rows := range map[string]int{"dead": 1, "waiting": 3, "fresh": 38} {
		p.click(".chip", chip)
		p.until(fmt.Sprintf(`document.querySelectorAll("main tbody tr").length === %d && document.querySelector(".chip[aria-current]").textContent === "%s %d"`,
			rows, chip, rows))
		if all, sum := counts(); all != 42 || sum != all {
			t.Errorf("%s: all counts %d, and the states %d, want 42", chip, all, sum)
		}
	}
	p.visit("#/documents?state=waiting")
	const cause = "waits for the sink, which is unhealthy"
	p.until(`[...document.querySelectorAll("main tbody tr")].every((r) => r.innerText.includes("` + cause + `") && /next try (in|now)/.test(r.innerText))`)
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		p.accessible("waiting, " + theme)
	}
	p.fits("waiting")
	p.visit("#/documents/content%23page-01")
	p.until(`document.querySelector(".sentence .tag").textContent === "waiting" && document.querySelector(".sentence .bars").innerText.startsWith("Next try")`)
	// The page tells the cause once, and its times are in the format of the page.
	if said := p.text(".sentence"); strings.Count(said, cause) != 1 || regexp.MustCompile(`\dT\d`).MatchString(said) {
		t.Errorf("the page says %q", said)
	}
	p.accessible("a document that waits")
	p.fits("a document that waits")
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

// The page of a document says whether a search finds it, if the user asks.
func TestADocumentSaysWhetherItIsSearchable(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	s.publish(`{"type":"doc.changed","subject":"found","sequence":"7","data":{}}`)
	s.written(1)
	p := open(t, s.address)
	p.load("#/documents/content%23found")
	p.click("button", "Is it searchable?")
	p.until(`[...document.querySelectorAll("main td")].some((c) => c.textContent === "yes (asked)")`)
	p.quiet()
}
