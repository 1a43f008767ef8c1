// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import "testing"

// An operator pauses a sink with a reason, and finds on Now who did it and why. Resume ends it.
func TestASinkIsPausedOnNowWithAReasonAndResumed(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	p := open(t, s.address)
	p.load("#/now")
	// A question ends with the view that asked it.
	p.visit("#/jobs")
	p.visit("#/now")
	p.click("main button", "Pause…")
	p.shows("Messages wait in the queue")
	p.until(`(() => { const at = document.querySelector("#why"); return at.getBoundingClientRect().top >= document.querySelector("label[for=why]").getBoundingClientRect().bottom; })()`)
	p.until(`(history.back(), true)`)
	p.until(`location.hash === "#/jobs" && !document.querySelector("dialog")`)
	p.visit("#/now")
	p.click("main button", "Pause…")
	p.shows("Messages wait in the queue")
	p.until(`document.querySelector("dialog button[type=submit]").disabled`)
	value[bool](p, `(() => { const at = document.querySelector("#why"); at.value = "an upgrade <b>"; at.dispatchEvent(new Event("input")); return true; })()`)
	p.accessible("the question")
	p.click("dialog button", "Pause the sink")
	p.shows("Sink search is paused by")
	p.shows("Reason: an upgrade <b>")
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		p.accessible("paused, " + theme)
	}
	p.fits("paused")
	s.publish(put("waits", "1", "It waits", ""))
	p.visit("#/documents")
	p.until(`/waits for the sink, which .* paused \(an upgrade <b>\)/.test(document.querySelector("main tbody")?.innerText)`)
	p.visit("#/now")
	p.click(".alert button", "Resume…")
	p.click("dialog button", "Resume the sink")
	p.until(`!document.body.innerText.includes("Sink search is paused by")`)
	s.written(1)
	p.quiet()
}
