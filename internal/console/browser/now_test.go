// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"fmt"
	"strings"
	"testing"
)

// bootOf returns the boot id of the server of a page.
func bootOf(p *page) string {
	p.t.Helper()
	return value[string](p, `fetch("/console/about").then((a) => a.json()).then((a) => a.boot)`)
}

// In an outage, the first section of the page is about the outage: the sink, the time at which it
// began, what lull does, and the oldest waiting document compared with the promise. Every view
// shows the outage in its heading.
func TestAnOutageIsTheFirstThingThatTheConsoleShows(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	w := wireTo(t, s.address)
	p := open(t, strings.TrimPrefix(w.URL, "http://"))
	p.load("")
	w.status.Store(fmt.Sprintf(`"boot":%q,"status":{"queues":[{"queue":"search-live","visible":0,"in_flight":69}],`, bootOf(p)) +
		`"sinks":[{"sink":"search","open":true,"level":3,"since":"2026-01-02T03:03:48Z",` +
		`"open_until":"2026-01-02T03:05:05Z","cause":"no_connection"}],` +
		`"flow":{"span_ns":60000000000,"p50_ns":5800000000,"oldest_at":"2026-01-02T03:03:42Z",` +
		`"promise_ns":9000000000,"late_ns":34000000000}}`)
	for _, width := range []int64{390, 1280, 1920} {
		p.size(width, 900)
		p.load("#/now")
		p.shows("Sink search is unhealthy since about")
		first := p.text("#view > section:first-child section.alert.bad:first-child")
		for _, want := range []string{"Oldest waiting: 2", "promise: 9.0 s", "69 messages wait", "no_connection", "What lull does", "asks the sink again in"} {
			if !strings.Contains(first, want) {
				t.Errorf("no %q in %q", want, first)
			}
		}
		if top := value[float64](p, `document.querySelector(".alert.bad").getBoundingClientRect().bottom`); top > 700 {
			t.Errorf("at %d px it ends %g px below the top", width, top)
		}
	}
	p.until(`document.querySelector("#health.bad")?.innerText === "Sink search is unhealthy"`)
	p.until(`document.querySelector(".alert a.nowrap").getAttribute("href").endsWith("/docs/runbook/sink-down.md")`)
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		p.accessible("an outage, " + theme)
	}
	p.fits("an outage")
	// The time of the outage changes each second. A link stays the same while it is pressed.
	press := func(what string) string {
		return `(pressed.dispatchEvent(new PointerEvent("` + what + `", {bubbles: true})), true)`
	}
	value[bool](p, `(window.pressed = document.querySelector(".alert a"), `+press("pointerdown")+`)`)
	waits := `document.querySelector(".three dd").innerText`
	before := value[string](p, waits)
	p.until(waits + ` !== ` + quote(before))
	if !value[bool](p, `pressed.isConnected`) {
		t.Error("a link was replaced while it was pressed")
	}
	value[bool](p, press("pointerup"))
	p.until(`!pressed.isConnected`)
	p.visit("#/whatif")
	p.until(`document.querySelector("#health.bad").checkVisibility()`)
	p.quiet()
}

// If an operator pauses a sink that is away, the page shows one problem, which says both. A paused
// sink explains why documents are late.
func TestAPauseDoesNotHideAnOutage(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	w := wireTo(t, s.address)
	p := open(t, strings.TrimPrefix(w.URL, "http://"))
	p.load("")
	boot := bootOf(p)
	for _, tt := range []struct{ open, level, title, not string }{
		{
			`"open":true,"since":"2026-01-02T03:00:48Z","open_until":"2026-01-02T03:05:05Z","cause":"no_connection",`,
			"bad", "Sink search is unhealthy, and paused by an operator", "asks the sink again",
		},
		{"", "warn", "Sink search is paused by an operator", "unhealthy"},
	} {
		w.status.Store(fmt.Sprintf(`"boot":%q,"status":{"queues":[],"sinks":[{"sink":"search",%s`, boot, tt.open) +
			`"pause":{"since":"2026-01-02T03:03:00Z","by":"an operator","why":"an upgrade","dead_from":"2026-01-03T03:03:00Z"}}],` +
			`"flow":{"span_ns":60000000000,"oldest_at":"2026-01-02T03:00:42Z","promise_ns":9000000000,"late_ns":34000000000}}`)
		p.load("#/now")
		p.shows(tt.title)
		p.shows("an upgrade")
		alerts := value[[]string](p, `[...document.querySelectorAll(".alert")].map((e) => e.innerText)`)
		if len(alerts) != 1 || !strings.Contains(alerts[0], "rites nothing") || strings.Contains(alerts[0], tt.not) {
			t.Errorf("the problems are %q", alerts)
		}
		p.until(`document.querySelector(".alert.` + tt.level + ` button")?.innerText === "Resume…"`)
		p.accessible(tt.title)
	}
	p.quiet()
}

// measured is a script that answers the requests of the view Now. The answer has two bursts with a
// gap between them, an outage in the second burst, and only dead events in the last step.
const measured = `(() => {
	const real = window.fetch, now = Date.now(), at = (s) => new Date(now - s * 1000).toISOString();
	const fresh = {p50_ns: 2e9, p99_ns: 3e9};
	window.fetch = (path, o) => !String(path).includes("/console/now") ? real(path, o) : Promise.resolve(Response.json({
		since: at(300), step_ns: 1e9, total: {events: 9}, promises: [{fresh_ns: 5e9, collections: []}],
		outages: [{sink: "search", from: at(60), to: at(30)}],
		points: [{at: at(50), events: 1, written: 1, ...fresh},
			{at: at(49), events: 3, written: 2, superseded: 1, ...fresh},
			{at: at(20), events: 2, written: 2, ...fresh}, {at: at(5), events: 1, dead: 1}]}));
	return true;
})()`

func TestTheChartsAreTrue(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	p := open(t, s.address)
	p.load("#/search")
	p.until(measured)
	p.visit("#/now")
	p.until("document.querySelectorAll('.chart svg').length === 2")
	// Steps without a write are a gap in the line.
	p.until(`document.querySelector(".chart path.m-median").getAttribute("d").match(/M/g).length >= 2`)
	// Both charts have the same time axis, and the captions name the time zone.
	texts := func(n int) string {
		return value[string](p, fmt.Sprintf(
			`[...document.querySelectorAll("figure")[%d].querySelectorAll("svg text")].map((e) => e.textContent).filter((s) => s.includes(":")).join()`, n))
	}
	if a, b := texts(0), texts(1); a == "" || a != b {
		t.Errorf("the axes differ: %s and %s", a, b)
	}
	if got := value[int](p, `[...document.querySelectorAll("figcaption")].filter((e) => /times are UTC/.test(e.textContent)).length`); got != 2 {
		t.Errorf("%d captions name the zone, want 2", got)
	}
	// Counts are shown as bars, the ticks of their axis are whole numbers, and the outage is
	// shaded.
	p.until(`document.querySelectorAll("figure:last-of-type .chart rect.shade.outage").length === 1 &&
		document.querySelectorAll(".chart rect.fill.m-dead").length === 1`)
	if got := value[string](p, `[...document.querySelectorAll("figure")].at(-1).querySelectorAll("svg text[text-anchor=end]").values().map((e) => e.textContent).filter((s) => !s.includes(":")).toArray().join()`); strings.Contains(got, ".") || !strings.HasPrefix(got, "0,1") {
		t.Errorf("the ticks are %s", got)
	}
	// A meaning has one colour: dead events have the same colour in the bar, in the legend and
	// below.
	if got := value[[]string](p, `[...new Set([...document.querySelectorAll("rect.m-dead")].map((e) => getComputedStyle(e).fill).concat(getComputedStyle(document.querySelector(".dot.m-dead")).backgroundColor))]`); len(got) != 1 {
		t.Errorf("dead has the colours %q", got)
	}
	// When the pointer is over a step, a tooltip shows the numbers of the step.
	value[bool](p, `(() => { const at = document.querySelector(".chart svg"), to = at.querySelector("path.m-median").getBoundingClientRect(), box = at.getBoundingClientRect();
		at.dispatchEvent(new PointerEvent("pointermove", {clientX: to.left + 2, clientY: box.top + 20, bubbles: true})); return true; })()`)
	p.until(`/median 2.0 s/.test(document.querySelector(".tip:not([hidden])")?.innerText)`)
	p.quiet()
}
