// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	pages "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a page may take to show something, on a machine with other work.
const patience = 4 * time.Minute

// chromium is one browser for all tests.
var chromium context.Context

func TestMain(m *testing.M) {
	options := []chromedp.ExecAllocatorOption{
		chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"),
	}
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has no sandbox for root
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	browser, end := chromedp.NewContext(allocator)
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintf(os.Stderr, "Chromium does not start; `apt-get install chromium` installs it: %v\n", err)
		os.Exit(1)
	}
	chromium = browser
	code := m.Run()
	end()
	stop()
	os.Exit(code)
}

// page is a tab with its own profile.
type page struct {
	t   *testing.T
	ctx context.Context
	url string // the address of the page, without a fragment

	mu   sync.Mutex
	said []string // errors on the console, exceptions, and breaches of the content security policy
}

// spy runs before the scripts of a page. If pwned is not 0 later, a sender's text was run as a
// script.
const spy = `window.pwned = 0; window.breaches = [];
addEventListener("securitypolicyviolation", (e) => window.breaches.push(e.violatedDirective + " " + e.blockedURI));
window.alert = window.confirm = window.prompt = () => { window.pwned++; };
window.pending = 0;
const ask = window.fetch;
window.fetch = async (...all) => {
  if (String(all[0]).startsWith("/console/events")) return ask(...all); // it never ends
  window.pending++;
  try { return await ask(...all); } finally { setTimeout(() => window.pending--, 50); } // when the page has drawn it
};`

// open opens a page of a server. The address consists of host and port.
func open(t *testing.T, address string) *page {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx, url: "http://" + address + "/"}
	err := chromedp.Listen(ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			p.hear("exception: " + e.ExceptionDetails.Text + " " + exception(e))
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" || e.Type == "assert" {
				p.hear(fmt.Sprintf("console: %s", text(e.Args)))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" {
				p.hear(fmt.Sprintf("log: %s %s", e.Entry.Text, e.Entry.URL))
			}
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, pages.AddScriptToEvaluateOnNewDocument,
			pages.AddScriptToEvaluateOnNewDocumentParams{Source: spy})
	}
	if err != nil {
		t.Fatal(err)
	}
	p.size(1280, 900)
	return p
}

func exception(e *runtime.EventExceptionThrown) string {
	if e.ExceptionDetails.Exception == nil {
		return ""
	}
	return e.ExceptionDetails.Exception.Description
}

func text(args []*runtime.RemoteObject) string {
	var all []string
	for _, a := range args {
		all = append(all, string(a.Value)+a.Description)
	}
	return strings.Join(all, " ")
}

func (p *page) hear(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, what)
}

// heard returns the messages since the last call.
func (p *page) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	said := p.said
	p.said = nil
	return said
}

// quiet checks that nothing went wrong since the last call: no error, no breach of the policy, and
// no text of a sender that ran. It ignores expected errors.
func (p *page) quiet(expected ...string) {
	p.t.Helper()
	for _, what := range p.heard() {
		if !slices.ContainsFunc(expected, func(e string) bool { return strings.Contains(what, e) }) {
			p.t.Errorf("the page says %s", what)
		}
	}
	if got := value[[]string](p, "window.breaches"); len(got) > 0 {
		p.t.Errorf("the policy stopped %q", got)
	}
	if got := value[int](p, "window.pwned"); got != 0 {
		p.t.Error("what a sender wrote has run")
	}
}

// do runs steps, and fails after a time limit.
func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// value returns the value of an expression.
func value[T any](p *page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	// The script returns JSON, because the value may be of any type.
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("(async () => JSON.stringify(await ("+expression+")))()",
		chromedp.EvalAwaitPromise))
	var v T
	if err == nil {
		err = json.Unmarshal([]byte(text), &v)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", brief(expression), err)
	}
	return v
}

func brief(s string) string { return s[:min(len(s), 120)] }

// until waits for an expression to be true.
func (p *page) until(expression string) {
	p.t.Helper()
	for end := time.Now().Add(patience); !value[bool](p, "Boolean("+expression+")"); pause(p.ctx) {
		if time.Now().After(end) {
			p.t.Fatalf("after %s not yet: %s\nthe page shows: %s\nand says %q", patience, expression,
				brief(p.text("main")), p.heard())
		}
	}
}

// text returns the text that an element shows.
func (p *page) text(selector string) string {
	p.t.Helper()
	return value[string](p, "document.querySelector("+quote(selector)+")?.innerText ?? ''")
}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // cannot happen: a string can always be encoded in JSON
	}
	return string(text)
}

// shows waits until the page has a text.
func (p *page) shows(text string) {
	p.t.Helper()
	p.until("document.body.innerText.includes(" + quote(text) + ")")
}

// load loads the page at an address after the #.
func (p *page) load(fragment string) {
	p.t.Helper()
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(p.url+fragment))
	p.ready()
}

// visit goes to an address after the #, without loading the page again.
func (p *page) visit(fragment string) {
	p.t.Helper()
	if value[string](p, "location.hash") == fragment {
		return
	}
	value[bool](p, "(document.querySelector('#view')?.setAttribute('data-left', ''), location.hash = "+
		quote(fragment)+", true)")
	p.until("!document.querySelector('#view[data-left]')")
	p.ready()
}

// ready waits until the view is mounted and shows the answers to its requests.
func (p *page) ready() {
	p.t.Helper()
	p.until("document.querySelector('#views a') && document.querySelector('#view')?.children.length > 0 && " +
		"window.pending === 0 && !document.querySelector('[aria-busy=true]')")
}

func (p *page) size(width, height int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
}

// theme sets light or dark, and turns off animations, so that a picture shows the final state.
func (p *page) theme(name string) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
		},
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// press presses keys.
func (p *page) press(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// click clicks the first element that matches the selector and whose text begins with text.
func (p *page) click(selector, text string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%s)].find((e) => !e.disabled && "+
		"e.innerText.trim().startsWith(%s))", quote(selector), quote(text))
	p.until(find)
	value[bool](p, "("+find+".click(), true)")
}
