// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// axe returns the source of axe-core, which npm downloaded.
var axe = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		return "", fmt.Errorf("`make test-console` fetches axe-core: %w", err)
	}
	return string(text), nil
})

// violation is a rule of axe-core that a page breaks.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// accessible checks the page against every rule of axe-core, including best practices. There are no
// exceptions.
func (p *page) accessible(where string) {
	p.t.Helper()
	source, err := axe()
	if err != nil {
		p.t.Fatal(err)
	}
	if !value[bool](p, "typeof axe === 'object'") {
		value[bool](p, "("+"(() => {"+source+"})(), true)")
	}
	for _, v := range value[[]violation](p, "axe.run(document).then((r) => r.violations)") {
		for _, n := range v.Nodes {
			p.t.Errorf("%s: %s: %s\n%s\n%s", where, v.ID, v.Help, n.HTML, n.Summary)
		}
	}
}

// tooWide is a script that returns by how many pixels the page is wider than its window. It also
// returns which elements are too wide, and which tables scroll sideways on a phone.
const tooWide = `({pixels: document.documentElement.scrollWidth - innerWidth,
	cut: [...document.querySelectorAll(".stack")].filter((e) => innerWidth < 640 && e.scrollWidth > e.clientWidth + 1)
		.map((e) => e.getAttribute("aria-label") + [...e.querySelectorAll("*")].filter((c) => c.getBoundingClientRect().right > e.getBoundingClientRect().right + 1).slice(0, 3).map((c) => " " + c.tagName + " " + c.textContent.slice(0, 40))),
	by: [...document.querySelectorAll("body *")]
		.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre, .chart"))
		.slice(0, 3).map((e) => e.tagName + "." + e.className)})`

// fits checks that neither the page as a whole nor a table of a phone scrolls sideways.
func (p *page) fits(where string) {
	p.t.Helper()
	for _, width := range []int64{320, 768, 1440} {
		p.size(width, 900)
		got := value[struct {
			Pixels int      `json:"pixels"`
			By     []string `json:"by"`
			Cut    []string `json:"cut"`
		}](p, tooWide)
		if len(got.Cut) > 0 {
			p.t.Errorf("%s: at %d px these tables scroll sideways: %q", where, width, got.Cut)
		}
		if got.Pixels > 0 {
			p.t.Errorf("%s: at %d px the page is %d px too wide: %q", where, width, got.Pixels, got.By)
		}
	}
	p.size(1280, 900)
}

// views returns the addresses in the navigation.
func (p *page) views() []string {
	p.t.Helper()
	return value[[]string](p, `[...document.querySelectorAll("#views a")].map((a) => a.getAttribute("href"))`)
}

// put returns a line with one event: a version of a document.
func put(id, version, title, text string) string {
	return fmt.Sprintf(`{"type":"doc.changed","subject":%s,"sequence":%s,"data":{"title":%s,"text":%s}}`+"\n",
		quote(id), quote(version), quote(title), quote(text))
}

// seed returns the events of a user's first minutes: documents with several versions, a delete with
// a late put after it, and messages that become dead letters.
func seed() string {
	var b strings.Builder
	for i := range 40 {
		for v := range 1 + i%3 {
			b.WriteString(put(fmt.Sprintf("page-%02d", i), fmt.Sprint(v+1), fmt.Sprintf("Page %d", i),
				fmt.Sprintf("Version %d of a page about lull.", v+1)))
		}
	}
	b.WriteString(`{"type":"doc.deleted","subject":"page-39","sequence":"9"}` + "\n")
	b.WriteString(`{"type":"doc.changed","subject":"page-39","sequence":"8","data":{"title":"too late"}}` + "\n")
	b.WriteString(`{"type":"doc.changed","subject":"no-version","data":{"title":"which version?"}}` + "\n")
	b.WriteString(`{"type":"doc.changed","sequence":"1","data":{"title":"no subject"}}` + "\n")
	b.WriteString("this is not JSON\n")
	return b.String()
}

// seeded is how many versions lull writes to the sink after seed was published.
const seeded = 39

// Every view obeys the rules of axe-core in both themes, for an empty stack and for a stack with
// documents. No page scrolls sideways at any width, and no view causes an error.
func TestEveryViewIsAccessibleAndFits(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]string{"empty": "", "documents": seed()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, events)
			if events != "" {
				s.written(seeded)
			}
			p := open(t, s.address)
			p.load("")
			visits := p.views()
			if events != "" {
				visits = append(visits, "#/documents/content%23page-01", "#/documents/content%23there-is-none",
					"#/search?q=page")
			}
			for _, view := range visits {
				p.visit(view)
				for _, theme := range []string{"light", "dark"} {
					p.theme(theme)
					p.accessible(view + " " + theme)
				}
				p.fits(view)
				// A missing document is a 404: the console says so, and Chromium logs it.
				p.quiet("there-is-none")
			}
		})
	}
}
