// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// New events are shown without a reload.
func TestWhatHappensIsShownAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	p := open(t, s.address)
	p.load("#/dead")
	s.publish(seed())
	s.written(seeded)
	p.shows("There are 3 parked now")
	p.click("main button", "Show them")
	p.shows("no-version")
	p.visit("#/now")
	s.publish(put("one-more", "1", "One more", ""))
	p.until(`[...document.querySelectorAll(".card")].some((e) => /^Written\s+40\b/.test(e.innerText))`)
	p.quiet()
}

// wire is a proxy for a server. Its connection to the server can be cut and restored, at the same
// address.
type wire struct {
	*httptest.Server
	cut    atomic.Bool
	denies atomic.Value // the boot id of a server whose requests are all denied; empty to deny nothing
	status atomic.Value // the fields of the only event that a page gets; empty for the stack's own events
}

func wireTo(t *testing.T, address string) *wire {
	t.Helper()
	to := &url.URL{Scheme: "http", Host: address}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	w := &wire{}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if w.cut.Load() {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		status, _ := w.status.Load().(string)
		switch {
		case status != "" && r.URL.Path == "/console/events":
			tick(out, r, status)
		case !w.forbid(out, r):
			proxy.ServeHTTP(out, r)
		}
	}))
	w.Config.ErrorLog = nil
	w.Start()
	t.Cleanup(w.Close)
	return w
}

// forbid denies the requests of the views, as a stack does for a role without rights. It does not
// deny the page, its files, and what the page reads about its server.
func (w *wire) forbid(out http.ResponseWriter, r *http.Request) bool {
	const denied = "Access denied: your role lacks dynamodb:Query."
	boot, _ := w.denies.Load().(string)
	switch {
	case boot == "" || !strings.HasPrefix(r.URL.Path, "/console/") || r.URL.Path == "/console/about":
		return false
	case r.URL.Path == "/console/events":
		tick(out, r, fmt.Sprintf(`"boot":%q,"error":%q`, boot, denied))
	default:
		out.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(out, `{"error":%q}`, denied)
	}
	return true
}

// tick answers with one event, and keeps the stream open.
func tick(out http.ResponseWriter, r *http.Request, fields string) {
	out.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(out, `data: {"now":"2026-01-02T03:04:05Z",%s}`+"\n\n", fields)
	_ = http.NewResponseController(out).Flush()
	<-r.Context().Done()
}

// After an outage of a sink, the page does not call the sink healthy until the delayed messages are
// written.
func TestNowSaysUntilWhenMessagesArePutOff(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	w := wireTo(t, s.address)
	p := open(t, strings.TrimPrefix(w.URL, "http://"))
	p.load("")
	boot := value[string](p, `fetch("/console/about").then((a) => a.json()).then((a) => a.boot)`)
	for name, c := range map[string]struct{ put, want, not string }{
		"put off": {
			`,"cause":"no_connection","put_off":29,"put_off_until":"2026-01-02T03:14:05Z"`,
			"takes documents again, at a pace that grows; last reason: no_connection; " +
				"at most 29 messages are put off, and come back by", "healthy",
		},
		"done": {"", "healthy again", "put off"},
	} {
		w.status.Store(fmt.Sprintf(`"boot":%q,"status":{"sinks":[{"sink":"search","rate":8,"growing":true%s}]}`, boot, c.put))
		p.load("#/now")
		p.shows(c.want)
		if text := p.text("main"); strings.Contains(text, c.not) {
			t.Errorf("%s: the page says %q:\n%s", name, c.not, text)
		}
		p.quiet()
	}
}

// If the role lacks a right, each view that reads from the stack names the right, and no view
// breaks.
func TestEveryViewSaysWhatIsDenied(t *testing.T) {
	t.Parallel()
	s := start(t, seed())
	s.written(seeded)
	w := wireTo(t, s.address)
	p := open(t, strings.TrimPrefix(w.URL, "http://"))
	p.load("")
	w.denies.Store(value[string](p, `fetch("/console/about").then((a) => a.json()).then((a) => a.boot)`))
	p.load("")
	for _, view := range append(p.views(), "#/documents/content%23page-01", "#/search?q=page") {
		p.load(view)
		if view != "#/search" { // this view reads nothing at first
			p.shows("dynamodb:Query")
		}
		p.accessible(view)
		p.fits(view)
		p.quiet("403 (Forbidden)")
	}
}

// The page shows that the connection is lost, and connects again by itself. The next event is shown
// without a reload.
func TestALostServerComesBackByItself(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	w := wireTo(t, s.address)
	p := open(t, strings.TrimPrefix(w.URL, "http://"))
	p.load("#/dead")
	value[bool](p, "(window.here = true)")
	p.until("document.querySelector('#banner').hidden")
	w.cut.Store(true)
	w.CloseClientConnections()
	p.until("!document.querySelector('#banner').hidden")
	p.shows("Connection lost")
	p.accessible("connection lost")
	w.cut.Store(false)
	p.until("document.querySelector('#banner').hidden")
	s.publish(seed())
	s.written(seeded)
	p.shows("There are 3 parked now")
	if !value[bool](p, "window.here === true") {
		t.Error("the page was loaded again")
	}
	p.quiet("ERR_", "Failed to load resource")
}

// A restarted server has another token. The page asks the user to reload it, and works after that.
func TestAServerThatWasStartedAgainAsksForAReload(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	p := open(t, s.address)
	p.load("#/now")
	p.until("document.querySelector('#banner').hidden")
	s.stop()
	p.until("!document.querySelector('#banner').hidden")
	startAt(t, s.address, "")
	p.shows("lull was restarted")
	p.quiet("ERR_", "Failed to load resource")
	p.click("#banner button", "Reload")
	p.until("document.querySelector('#banner')?.hidden && document.querySelector('#views a')")
}

// hostile are ids that would break a page which uses texts as markup, as addresses or as lines.
var hostile = []string{
	`<script>window.pwned++</script>`, `"><img src=x onerror=window.pwned++>`,
	`</script><script>window.pwned++</script>`, `'-window.pwned++-'`, `javascript:window.pwned++`,
	"right\u202eto left", `../../etc/passwd`, `a%2fb%00`, `a?b=c&d#e`,
	`{{constructor.constructor('window.pwned++')()}}`, "${window.pwned++}",
	strings.Repeat("\U0001f600", 120), strings.Repeat("long", 100),
}

// A sender's text is shown as text everywhere, and is never run.
func TestHostileIdsAreShownAsText(t *testing.T) {
	t.Parallel()
	var events strings.Builder
	for _, id := range hostile {
		// The event with the second sequence becomes a dead letter.
		for _, sequence := range []string{"1", "<img src=x onerror=window.pwned++>"} {
			events.WriteString(put(id, sequence, "hit "+id, ""))
		}
	}
	s := start(t, events.String())
	s.written(len(hostile) - 1) // lull refuses the id with the character that reverses the order of a text
	p := open(t, s.address)
	p.load("")
	for _, view := range p.views() {
		p.visit(view)
		p.quiet()
	}
	for _, view := range []string{"#/documents", "#/dead", "#/search?q=hit"} {
		p.visit(view)
		if view != "#/dead" {
			p.until(`document.querySelector("main").innerText.includes("<script>window.pwned++</script>")`)
		}
		p.fits(view)
		p.quiet()
	}
	for _, id := range hostile {
		p.visit("#/documents/" + url.PathEscape("content#"+id))
		p.until(`document.querySelector("main").textContent.includes(` + quote(firstOf(id)) + `)`)
		p.fits(id)
		p.quiet()
	}
}

// firstOf returns the beginning of an id, because a page may cut a long one.
func firstOf(id string) string {
	if i := strings.IndexFunc(id, func(r rune) bool { return r == '\u202e' }); i >= 0 {
		return id[:i] // the page shows the number of this character instead
	}
	r := []rune(id)
	return string(r[:min(len(r), 20)])
}

// markFocused is a script that marks the element with the focus, and returns the element's name.
const markFocused = `(() => { const e = document.activeElement; if (!e || e === document.body) return "";
	e.dataset.reached = "1"; return e.tagName + " " + (e.innerText || e.value || e.id || "").slice(0, 40); })()`

const controls = "a[href], button, input, select, textarea, summary, [tabindex='0']"

// notReached lists the controls that the tab key did not reach. It ignores radio buttons, because
// the tab key reaches only one of a group.
const notReached = `[...document.querySelectorAll("` + controls + `")]
	.filter((e) => !e.disabled && e.checkVisibility() && e.type !== "radio" && !e.dataset.reached)
	.map((e) => e.outerHTML.slice(0, 120))`

// Every control of every view can be reached and used without a mouse.
func TestTheKeyboardIsEnough(t *testing.T) {
	t.Parallel()
	s := start(t, seed())
	s.written(seeded)
	p := open(t, s.address)
	p.load("")
	for _, view := range p.views() {
		p.load(view)
		stops := value[int](p, "document.querySelectorAll("+quote(controls)+").length")
		for range stops + 5 {
			p.press("\t")
			if value[string](p, markFocused) == "" {
				break // the focus has left the last control of the page
			}
			if outline := value[string](p, "getComputedStyle(document.activeElement).outlineStyle"); outline == "none" {
				t.Errorf("%s: %s has the focus and does not show it", view, value[string](p, markFocused))
			}
		}
		if got := value[[]string](p, notReached); len(got) > 0 {
			t.Errorf("%s: the tab key does not come to %q", view, got)
		}
	}
	// The skip link is first and jumps over the navigation. Enter opens a view.
	p.load("#/now")
	p.press("\t")
	if got := value[string](p, "document.activeElement.className"); got != "skip" {
		t.Errorf("the first stop is %q, want the skip link", got)
	}
	p.press("\r")
	p.press("\t")
	if value[bool](p, "Boolean(document.activeElement.closest('header'))") {
		t.Error("the skip link does not skip the navigation")
	}
	value[bool](p, `(document.querySelector("#views a[href*=whatif]").focus(), true)`)
	p.press("\r")
	p.until("document.querySelector('#title').innerText === 'What if' && document.activeElement.id === 'title'")
	p.quiet()
}

// Break it works with the keyboard: the page shows that the sink is down. After the repair the
// stack recovers, and nothing is lost.
func TestBreakItShowsTheBreakAndTheRecovery(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	p := open(t, s.address)
	p.load("#/breakit")
	p.click("button", "Keep sending")
	focus := func(selector string) { value[bool](p, "(document.querySelector("+quote(selector)+").focus(), true)") }
	focus("#break-sink_down")
	p.press(" ")
	p.shows("sink down")
	p.until(`Number(document.querySelectorAll(".card dd")[2].innerText) > 9`) // waiting
	p.click("button", "Stop sending")
	p.click("button", "Restore all")
	p.shows("Recovered")
	p.shows("Nothing was lost")
	p.accessible("recovered")
	p.click("button", "Kill index")
	p.click("button", "Keep sending")
	p.shows("killed 1 time")
	p.click("button", "Stop sending")
	p.quiet()
}

// What if shows two settings side by side, faults at their fields, and a comparison that can be
// stopped.
func TestWhatIfComparesAndNamesFaults(t *testing.T) {
	t.Parallel()
	s := start(t, "")
	p := open(t, s.address)
	p.load("#/whatif")
	set := func(id, text string) {
		value[bool](p, "(document.getElementById("+quote(id)+").value = "+quote(text)+", true)")
	}
	settings := value[string](p, "document.getElementById('whatif-settings').value")
	set("whatif-settings", strings.Replace(settings, "quiet: 1s", "quite: 1s", 1)+"\n<script>: 1\n")
	set("whatif-load", "0")
	p.click("button", "Compare")
	p.shows("did you mean debounce.quiet?")
	p.until("document.querySelectorAll('[aria-invalid]').length === 2")
	p.accessible("faults")
	set("whatif-settings", strings.Replace(settings, "quiet: 1s", "quiet: 4s", 1))
	set("whatif-load", "1")
	set("whatif-for", "10m")
	p.click("button", "Compare")
	p.until("document.querySelectorAll('.chart svg').length === 4")
	if head := p.text("main thead"); !strings.Contains(head, "Today") || !strings.Contains(head, "Yours") {
		t.Errorf("the table has %q", head)
	}
	for _, theme := range []string{"light", "dark"} {
		p.theme(theme)
		p.accessible("compared")
	}
	p.fits("compared")
	// A window that became narrow holds the wide drawings until they are drawn anew.
	value[bool](p, "(document.querySelectorAll('.chart svg').forEach((s) => s.setAttribute('width', 2000)), true)")
	if pixels := value[int](p, tooWide+".pixels"); pixels > 0 {
		t.Errorf("drawings that are too wide make the page %d px too wide", pixels)
	}
	p.click("button", "Compare")
	p.click("button", "Stop")
	p.shows("Stopped.")
	p.click("button", "Compare") // a stopped comparison does not block the next one
	p.until("[...document.querySelectorAll('main [role=status]')].some((e) => e.innerText === 'Done.')")
	p.quiet()
}

// The pages of a stack with 100,000 documents are as fast as the pages of a small stack.
func TestAHundredThousandDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("it indexes 100,000 documents")
	}
	t.Parallel()
	const documents = 100_000
	var events strings.Builder
	for i := range documents {
		events.WriteString(put(fmt.Sprintf("d-%06d", i), "1", fmt.Sprintf("Document %d", i), ""))
	}
	s := start(t, events.String())
	s.written(documents)
	p := open(t, s.address)
	p.load("")
	for _, view := range append(p.views(), "#/documents/content%23d-099999", "#/search?q=document") {
		p.visit(view)
		if n := value[int](p, "document.querySelectorAll('main *').length"); n > 8000 {
			t.Errorf("%s: %d elements", view, n)
		}
		p.fits(view)
		p.quiet()
	}
	p.visit("#/documents/content%23d-099999")
	p.shows("d-099999")
}
