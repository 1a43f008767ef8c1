// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"fmt"
	"strings"
	"testing"
)

// column returns a script for the texts of a column of the first table of the page.
func column(n int) string {
	return fmt.Sprintf(`[...document.querySelectorAll("main tbody tr")].map((r) => r.children[%d].textContent)`, n)
}

// saved is a script that keeps each file that the page saves, and each text that it copies.
const saved = `(() => {
	window.files = []; window.copied = [];
	const real = URL.createObjectURL;
	URL.createObjectURL = (b) => { b.text().then((t) => files.push(t)); return real.call(URL, b); };
	const click = HTMLAnchorElement.prototype.click;
	HTMLAnchorElement.prototype.click = function () { if (!this.download) click.call(this); };
	Object.defineProperty(navigator, "clipboard", {value: {writeText: async (t) => { copied.push(t); }}});
	return true;
})()`

// A list is sorted by each of its columns, and the order stays while the list changes.
func TestAListIsSorted(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	s.publish(put("a-2", "5", "B", "") + put("a-10", "40", "A", "") + put("b", "3", "C", ""))
	s.written(3)
	p := open(t, s.address)
	p.load("#/documents")
	keys := column(0) + `.join()`
	p.until(keys + ` === "content#a-10,content#a-2,content#b"`)
	sorted := func() string {
		return value[string](p, `[...document.querySelectorAll("main th[aria-sort]")].map((e) => e.getAttribute("aria-sort")).join()`)
	}
	p.click("main th button", "Version")
	p.until(keys + ` === "content#b,content#a-2,content#a-10"`)
	if got, want := sorted(), "none,none,ascending,none,none"; got != want {
		t.Errorf("aria-sort is %s, want %s", got, want)
	}
	p.accessible("sorted")
	p.fits("sorted")
	p.click("main th button", "Version")
	p.until(keys + ` === "content#a-10,content#a-2,content#b"`)
	// Numbers in texts are compared as numbers. The focus stays on the button, and a new document
	// takes its place.
	value[bool](p, `([...document.querySelectorAll("main th button")].find((b) => b.textContent === "Document").focus(), true)`)
	p.press("\r")
	p.until(keys + ` === "content#a-2,content#a-10,content#b" && document.activeElement.textContent === "Document"`)
	s.publish(put("a-3", "1", "D", ""))
	s.written(4)
	p.until(keys + ` === "content#a-2,content#a-3,content#a-10,content#b" && document.activeElement.textContent === "Document"`)
	p.press("\r")
	p.press("\r")
	p.until(keys + ` === "content#a-10,content#a-2,content#a-3,content#b"`)
	if got := sorted(); strings.Contains(got, "cending") {
		t.Errorf("aria-sort is %s, want none", got)
	}
	p.quiet()
}

// Rows are selected with the keyboard, and an order is about the selected rows only.
func TestSelectedDeadLettersAreRedriven(t *testing.T) {
	t.Parallel()
	var events strings.Builder
	for i := range 4 {
		fmt.Fprintf(&events, `{"type":"doc.changed","subject":"d-%d","sequence":"1","data":[]}`+"\n", i)
	}
	s := start(t, events.String())
	p := open(t, s.address)
	p.load("#/dead")
	p.shows("4 parked")
	p.load("#/dead")
	p.until(`document.querySelectorAll("main tbody input[type=checkbox]").length === 4`)
	for _, at := range []int{1, 3} {
		value[bool](p, fmt.Sprintf(`(document.querySelectorAll("main tbody input[type=checkbox]")[%d].focus(), true)`, at))
		p.press(" ")
	}
	p.until(`document.querySelector("main thead input").indeterminate`)
	p.shows("Redrive 2 selected…")
	p.shows("A redrive fails again for 2")
	p.accessible("two are selected")
	p.fits("two are selected")
	chosen := value[[]string](p, `[...document.querySelectorAll("main tbody tr")].filter((r) => r.querySelector("input").checked).map((r) => r.querySelector("a.mono").textContent)`)
	p.click("main button", "Redrive 2 selected…")
	p.shows("Dry run: 2 would send.")
	p.accessible("the dry run of two")
	p.click("main button", "Redrive 2")
	p.shows("2 dead again")
	got := value[[]string](p, `[...[...document.querySelectorAll("main table")].find((t) => t.caption?.textContent === "Each is followed to its result").querySelectorAll("tbody a")].map((a) => a.textContent)`)
	if len(chosen) != 2 || len(got) != 2 || !strings.Contains(strings.Join(got, " "), chosen[0]) || !strings.Contains(strings.Join(got, " "), chosen[1]) {
		t.Errorf("selected %q, redriven %q", chosen, got)
	}
	p.load("#/dead")
	p.click("main thead input", "")
	p.shows("Drop 4 selected…")
	p.click("main thead input", "")
	p.shows("Drop all…")
	p.quiet()
}

// A cell that a spreadsheet would run as a formula is saved as text.
func TestAListIsSavedWithoutFormulas(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	s.publish(put("plain", "1", "A", "") + `{"type":"doc.changed","subject":"=cmd|' /C calc'!A0","data":{}}` + "\n" +
		`{"type":"doc.changed","subject":"a\";=1+1\"","sequence":"-1","data":{}}` + "\n")
	s.written(1)
	p := open(t, s.address)
	p.load("#/documents")
	p.until(saved)
	p.until(column(0) + `.length === 3`)
	p.click("main button", "Save as CSV")
	p.until(`files.length === 1`)
	if got := value[string](p, `files[0]`); !strings.HasPrefix(got, `"Document","State","Version","Operation","Pending","Why","Last write"`+"\r\n") ||
		!strings.Contains(got, "\r\n"+`"content#plain","fresh","1","put","","",`) || !strings.Contains(got, `"content#a"";'=1+1"""`) || strings.Count(got, "\r\n") != 4 {
		t.Errorf("the documents are saved as %q", got)
	}
	// The rules, cell by cell.
	for in, want := range map[string]string{
		"=1": "'=1", "+1": "'+1", "-1": "'-1", "@a": "'@a", " =1": " '=1", "\t=1": "\t'=1", "\x00=1": "'=1", "＝1": "'＝1", "a;=1": "a;'=1",
		"a\n-1": "a\n'-1", "a=1": "a=1", "2026-01-02": "2026-01-02", `"=1"`: `""=1""`, "": "",
	} {
		got := value[string](p, `import("/assets/lists.js").then((m) => m.csv(["h"], [[`+quote(in)+`]]))`)
		if want := "\"h\"\r\n\"" + want + "\"\r\n"; got != want {
			t.Errorf("%q is saved as %q, want %q", in, got, want)
		}
	}
	for _, view := range []string{"#/dead", "#/tail", "#/now"} {
		p.visit(view)
		p.click("main button", "Save as CSV")
	}
	p.until(`files.length === 4`)
	if got := value[string](p, `files[1]`); !strings.Contains(got, `"content#=cmd|`) && !strings.Contains(got, `"'=`) {
		t.Errorf("the dead letters are saved as %q", got)
	}
	p.quiet()
}

// The key, the version and the message of a document or a dead letter are copied with a button.
func TestKeysAndVersionsAreCopied(t *testing.T) {
	t.Parallel()
	s := start(t, put("one", "1795336827123", "One", "")+`{"type":"doc.changed","subject":"bad","sequence":"7","data":[]}`+"\n")
	s.written(1)
	p := open(t, s.address)
	p.load("#/documents/content%23one")
	p.until(saved)
	p.until(`document.querySelectorAll("main button.copy").length === 2`)
	value[bool](p, `(document.querySelectorAll("main button.copy").forEach((b) => b.click()), true)`)
	p.until(`copied.join() === "content#one,1795336827123"`)
	p.shows("Copied the version.")
	p.visit("#/dead")
	p.click("main tbody a", "Open")
	p.until(`document.querySelectorAll("main button.copy").length === 3`) // it has no version
	p.accessible("a dead letter with copy buttons")
	value[bool](p, `(copied.length = 0, document.querySelectorAll("main button.copy").forEach((b) => b.click()), true)`)
	p.until(`copied.length === 3 && copied[0] === "content#bad" && document.querySelector("main").textContent.includes(copied[1]) && location.hash.endsWith(copied[2])`)
	p.quiet()
}

// The charts reach as far back as the user chooses, and the parts of the stack have their counts.
func TestTheChartsReachAsFarBackAsChosen(t *testing.T) {
	t.Parallel()
	s := start(t, seed())
	s.written(seeded)
	p := open(t, s.address)
	p.load("#/now")
	pressed := `document.querySelector("main button[aria-pressed=true]")?.textContent`
	p.until(pressed + ` === "10 min"`)
	p.until(`document.querySelectorAll(".chart svg").length === 2`)
	for _, range_ := range []string{"24 h", "1 h"} {
		p.click("main button", range_)
		p.until(pressed + ` === ` + quote(range_))
		p.until(`[...document.querySelectorAll("figcaption")].some((e) => /^Events in each 1 min/.test(e.textContent))`)
	}
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		p.accessible("an hour, " + theme)
	}
	p.fits("an hour")
	p.click("main button", "10 min")
	p.until(`[...document.querySelectorAll("figcaption")].some((e) => /^Events in each [0-9]+ s/.test(e.textContent))`)
	p.until(`[...document.querySelectorAll("main table")].some((t) => /sink search/.test(t.innerText) && /collection content/.test(t.innerText) && /source native/.test(t.innerText))`)
	p.quiet()
}

// A request that takes long is shown, until it is answered. The answer does not move the focus of a
// user who has entered a field.
func TestALongRequestIsShown(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	p := open(t, s.address)
	p.load("#/now")
	p.until(`(() => { const real = window.fetch; window.fetch = (path, o) => String(path).startsWith("/console/dead/groups") && !window.release
		? new Promise((done) => { window.release = () => done(real(path, o)); }) : real(path, o); return true; })()`)
	value[bool](p, `(location.hash = "#/dead", true)`)
	p.until(`document.querySelector("#busy").checkVisibility() && /Waiting for the server/.test(document.querySelector("#busy").innerText)`)
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		p.accessible("a long request, " + theme)
	}
	p.fits("a long request")
	value[bool](p, `(document.querySelector("#dead-key").focus(), release(), true)`)
	p.until(`!document.querySelector("#busy").checkVisibility()`)
	p.shows("There are no dead letters")
	p.ready()
	if at := value[string](p, `document.activeElement.id`); at != "dead-key" {
		t.Errorf("the focus is at %q", at)
	}
	p.quiet()
}
