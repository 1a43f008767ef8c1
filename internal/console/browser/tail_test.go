// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"fmt"
	"strings"
	"testing"
)

// The tail shows decisions as they happen. Filters select them, a pause holds the list still, and
// the page keeps a bounded number of rows.
func TestTheTailShowsDecisionsAsTheyHappen(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	p := open(t, s.address)
	p.load("#/tail")
	p.shows("No decision passes the filter yet")
	p.accessible("an empty tail")
	s.publish(put("<b>one</b>", "1", "One", "") + put("two", "1", "Two", ""))
	s.written(2)
	rows := `[...document.querySelectorAll("main tbody tr")]`
	p.until(rows + `.filter((r) => /CLAIM/.test(r.innerText)).length === 2 && ` + rows + `.some((r) => r.innerText.includes("content#<b>one</b>"))`)
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		p.accessible("a tail, " + theme)
	}
	p.fits("a tail")

	// The filters select what is in the list already, and stay in the address.
	set := func(id, value, event string) {
		value = quote(value)
		p.until(fmt.Sprintf(`(() => { const at = document.getElementById(%q); at.value = %s; at.dispatchEvent(new Event(%q)); return true; })()`, id, value, event))
	}
	set("tail-word", "CLAIM", "change")
	p.until(rows + `.length === 2 && ` + rows + `.every((r) => /CLAIM/.test(r.innerText)) && location.hash.includes("word=CLAIM")`)
	set("tail-contains", "TWO", "input")
	p.until(rows + `.length === 1 && /content#two/.test(` + rows + `[0].innerText)`)
	set("tail-sink", "search", "change")
	set("tail-collection", "another", "input")
	p.until(rows + `.length === 0`)
	p.shows("No decision passes the filter yet")
	p.load("#/tail?word=CLAIM&contains=two")
	p.until(rows + `.length === 1 && document.querySelector("#tail-word").value === "CLAIM"`)

	// A pause holds the list still, and counts what is newer.
	p.load("#/tail?word=CLAIM")
	p.until(rows + `.length === 2`)
	p.click("main button", "Pause")
	s.publish(put("three", "1", "Three", ""))
	s.written(3)
	p.shows("Paused. 1 newer decision.")
	if n := value[int](p, rows+`.length`); n != 2 {
		t.Errorf("a paused list has %d rows, want 2", n)
	}
	p.click("main button", "Go on")
	p.until(rows + `.length === 3 && /content#three/.test(` + rows + `[0].innerText)`)

	// The page keeps a bounded number of rows.
	var events strings.Builder
	for i := range 400 {
		events.WriteString(put(fmt.Sprintf("many-%03d", i), "1", "Many", ""))
	}
	p.load("#/tail")
	for range 2 {
		p.click("main button", "Pause")
		s.publish(events.String())
		s.written(403)
		p.until(`Number(document.querySelector("main [role=status]").textContent.match(/([0-9,]+) newer/)?.[1].replace(",", "")) >= 400`)
		p.click("main button", "Go on")
		p.until(`/many-/.test(` + rows + `[0].innerText)`)
		p.shows("came too fast to be shown")
	}
	if n := value[int](p, rows+`.length`); n < 200 || n > 500 {
		t.Errorf("the page has %d rows", n)
	}
	p.quiet()
}
