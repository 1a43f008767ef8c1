// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"strings"
	"testing"
)

// If a redrive fails again, the console advises against it, and shows the result after it. A
// correction closes the dead letter when its document is fresh.
func TestARedriveAndACorrectionAreFollowedToTheirResult(t *testing.T) {
	t.Parallel()
	s := start(t, `{"type":"doc.changed","subject":"bad","data":{"title":"no version"}}`+"\n")
	p := open(t, s.address)
	p.load("#/dead")
	p.until(`[...document.querySelectorAll("main button")].some((b) => b.innerText.startsWith("Redrive all") && !b.matches(".primary"))`)
	p.shows("A redrive fails again for 1 version_invalid")
	p.click("main button", "Redrive all")
	p.click("main button", "Redrive 1")
	p.shows("1 dead again")
	p.until(`/version_invalid: .*sequence/.test([...document.querySelectorAll("main table")].find((t) => t.caption?.textContent === "Each is followed to its result").innerText)`)
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		p.accessible("a redrive that failed, " + theme)
	}
	p.fits("a redrive that failed")
	p.click("main tbody a", "Open")
	p.click("main a.button.primary", "Correct it")
	p.until(`document.querySelector("#send-closes")?.checked`)
	p.accessible("a correction")
	// An unchanged copy is sent only after a question.
	p.click("main button", "Send it")
	p.shows("Nothing was changed in the message")
	p.accessible("the question")
	p.click("dialog button", "Cancel")
	// A corrected version below the committed one is never written, and its dead letter stays.
	s.publish(put("bad", "101", "It is newer", ""))
	s.written(1)
	give := func(version string) {
		t.Helper()
		value[bool](p, `(() => { const at = document.querySelector("#send-body-0"); at.value = JSON.stringify({...JSON.parse(at.value), sequence: "`+version+`"}); return true; })()`)
		p.click("main button", "Send it")
	}
	give("90")
	p.shows("Version 90 is STALE, and is never written: version 101 of content#bad is committed, and is newer. " +
		"Give the message a newer version, or drop the dead letter. The dead letter stays parked.")
	if text := p.text("main"); strings.Contains(text, "Everything was sent") {
		t.Errorf("the page says %q", text)
	}
	give("102")
	p.shows("The document is fresh, and its dead letter is closed.")
	p.visit("#/dead")
	p.shows("There are no dead letters")
	p.quiet()
}

// The numbers of the page follow its filter. A part of a key opens no error.
func TestTheFilterOfDeadLettersHoldsForTheWholePage(t *testing.T) {
	t.Parallel()
	s := start(t, `{"type":"doc.changed","subject":"bad","data":{}}`+"\n"+`{"type":"doc.changed","subject":"worse","data":{}}`+"\n")
	p := open(t, s.address)
	p.load("#/dead")
	p.shows("A redrive fails again for 2 version_invalid")
	filter := func(key string) {
		t.Helper()
		p.until(`Boolean(document.querySelector("#dead-key"))`)
		value[bool](p, `(() => { const at = document.querySelector("#dead-key"); at.value = `+quote(key)+`; at.dispatchEvent(new Event("input")); return true; })()`)
		p.click("main button", "Filter")
	}
	filter("content#worse")
	p.shows("A redrive fails again for 1 version_invalid")
	p.shows("1 passes the filter")
	p.until(`document.querySelectorAll("main tbody tr").length === 1`)
	filter("wor")
	p.until(`document.querySelector("#dead-key")?.validationMessage.includes("the whole key") ||
		document.querySelector("main").innerText.includes("No dead letter passes the filter")`)
	if text := p.text("main"); strings.Contains(text, "no such dead letter") {
		t.Errorf("the page says %q", text)
	}
	p.quiet()
}
