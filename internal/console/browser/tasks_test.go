// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"fmt"
	"testing"
	"time"
)

// operator counts what an operator does for a task, from the page Now to the answer.
type operator struct {
	*page
	clicks int
	began  time.Time
}

func (o *operator) click(selector, text string) {
	o.t.Helper()
	o.page.click(selector, text)
	o.clicks++
}

// types types a text into a field.
func (o *operator) types(selector, text string) {
	o.t.Helper()
	o.until(`(() => { const at = document.querySelector(` + quote(selector) + `); if (!at) return false; at.focus(); return true; })()`)
	o.press(text)
}

// task runs a task of an operator who begins at Now, and checks how many clicks it takes.
func (s *stack) task(name string, clicks int, do func(o *operator)) {
	s.t.Helper()
	o := &operator{page: open(s.t, s.address), began: time.Now()}
	o.load("#/now")
	do(o)
	s.t.Logf("%s: %d clicks, %.1f s", name, o.clicks, time.Since(o.began).Seconds())
	if o.clicks > clicks {
		s.t.Errorf("%s takes %d clicks, want at most %d", name, o.clicks, clicks)
	}
	o.quiet()
}

// The five tasks of an operator, each with the clicks that it takes.
func TestTheTasksOfAnOperatorTakeFewClicks(t *testing.T) {
	t.Parallel()
	s := start(t, seed())
	s.written(seeded)
	s.breakSink()
	s.publish(put("page-01", "7", "It waits", ""))
	const cause = "waits for the sink, which is unhealthy"
	s.task("What is wrong?", 0, func(o *operator) {
		o.shows("Sink search is unhealthy since about")
		o.shows("What lull does")
	})
	s.task("Why is this document not fresh?", 1, func(o *operator) {
		o.click(".alert a", "")
		o.until(`[...document.querySelectorAll("main tbody tr")].some((r) => r.innerText.includes("content#page-01") && r.innerText.includes("` + cause + `"))`)
	})
	s.repairSink()
	s.task("Pause a sink", 2, func(o *operator) {
		o.click("main button", "Pause…")
		o.types("#why", "an upgrade")
		o.click("dialog button", "Pause the sink")
		o.shows("Sink search is paused by")
	})
	s.post("/console/sink/resume", `{"sink":"search"}`)
	s.task("Redrive to its end", 3, func(o *operator) {
		o.click(".alert a", "See why, and redrive or drop them")
		o.click("main button", "Redrive all…")
		o.click("main button", "Redrive 3")
		o.shows("3 dead again")
	})
	s.task("Find a dead letter", 3, func(o *operator) {
		o.click("nav a", "Dead letters")
		o.types("#dead-key", "content#no-version")
		o.click("main button", "Filter")
		o.until(`location.hash.includes("no-version") && document.querySelectorAll("main tbody tr").length === 1`)
		o.click("main tbody a", "Open")
		o.until(fmt.Sprintf(`document.querySelector("#title").textContent === %q`, "Dead letter of content#no-version"))
	})
}
