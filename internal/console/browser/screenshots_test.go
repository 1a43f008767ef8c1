// SPDX-License-Identifier: Apache-2.0

//go:build browser

package browser

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
)

var write = flag.Bool("write", false, "draw the pictures of the documentation again")

const (
	pictures   = "../../../docs/img"
	maxPicture = 120 << 10 // bytes
)

// newsroom writes the events of a small newsroom: bursts, deletes, and events that become dead
// letters.
func newsroom() (events string, written int) {
	titles := []string{
		"Vienna opens a reading room", "Trams run through the night", "A bridge is closed for repair",
		"The museum finds a lost map", "Rain until Friday", "School meals cost less", "A market moves indoors",
		"New trees for the ring road", "The library reads aloud", "Night trains to Hamburg are back",
	}
	var b strings.Builder
	for i, title := range titles {
		id := strings.ToLower(strings.Fields(strings.NewReplacer("A ", "", "The ", "", "New ", "").Replace(title))[0])
		for v := range 5 - i%3 {
			// The events are sent over half a minute, so that the charts have several points.
			text := fmt.Sprintf("Version %d: the reading room of the news.", v+1)
			fmt.Fprintf(&b, `{"after_ms":%d,"body":%s}`+"\n", 3000*i+200*v,
				strings.TrimSpace(put(id, fmt.Sprint(v+1), title, text)))
		}
	}
	b.WriteString(`{"type":"doc.changed","subject":"weather","data":{"title":"No version at all"}}` + "\n")
	b.WriteString(put("tickets", "soon", "A version that is not a number", ""))
	b.WriteString(`{"type":"doc.changed","sequence":"1","data":{"title":"No subject"}}` + "\n")
	b.WriteString("this is not JSON\n")
	return b.String(), len(titles)
}

// picture is a screenshot for the documentation.
type picture struct {
	name, view string
	dark       bool
	height     int64
	before     func(p *page) // what the user does before the picture
}

// TestScreenshots makes the pictures of docs/img. They always show the same events, but times and
// durations differ.
func TestScreenshots(t *testing.T) {
	if !*write {
		t.Skip("`make screenshots` draws them")
	}
	events, written := newsroom()
	s := start(t, events, "--quiet", "3s", "--max-wait", "9s")
	s.written(written)
	p := open(t, s.address)
	p.load("")
	for _, shot := range []picture{
		{name: "now", view: "#/now", height: 1000, before: drawn},
		{name: "now-dark", view: "#/now", height: 1000, dark: true, before: drawn},
		{name: "document", view: "#/documents/content%23vienna", height: 900},
		{name: "documents", view: "#/documents", height: 760, before: editing(s)},
		{name: "dead", view: "#/dead", height: 900},
		{name: "search", view: "#/search?q=reading", height: 760},
		{name: "send", view: "#/send", height: 900},
		{name: "whatif", view: "#/whatif", height: 1000, before: comparing},
		{name: "breakit", view: "#/breakit", height: 880, before: breaking},
	} {
		p := p
		if shot.name == "whatif" {
			// This picture uses the settings that most stacks have, so it needs another stack.
			p = open(t, start(t, "", "--quiet", "5s", "--max-wait", "30s").address)
			p.load("")
		}
		p.theme(map[bool]string{true: "dark", false: "light"}[shot.dark])
		p.size(1280, shot.height)
		p.visit(shot.view)
		if shot.before != nil {
			shot.before(p)
		}
		value[bool](p, "(document.activeElement?.blur(), true)")
		raw := usecasetest.Must(chromedp.Run(p.ctx, chromedp.CaptureScreenshot()))(t)
		small := usecasetest.Must(shrink(raw))(t)
		if len(small) > maxPicture {
			t.Errorf("%s: %d bytes, at most %d", shot.name, len(small), maxPicture)
		}
		usecasetest.OK(t, os.WriteFile(filepath.Join(pictures, "console-"+shot.name+".png"), small, 0o644))
		p.quiet()
	}
}

// comparing compares the settings with a longer quiet window, and waits for the result.
func comparing(p *page) {
	value[bool](p, `(() => {
		const at = document.getElementById("whatif-settings");
		at.value = at.value.replace("quiet: 5s", "quiet: 10s");
	})() || true`)
	p.click("button", "Compare")
	p.until("document.querySelectorAll('.chart svg').length === 4")
	value[bool](p, `(document.querySelector("#whatif-result").scrollIntoView({ block: "start" }), true)`)
}

// drawn waits until the charts are drawn.
func drawn(p *page) { p.until("document.querySelectorAll('.chart svg').length > 1") }

// editing publishes a burst of a few documents, which then wait.
func editing(s *stack) func(p *page) {
	return func(p *page) {
		for _, id := range []string{"bridge", "rain", "vienna"} {
			for v := range 3 {
				s.publish(put(id, fmt.Sprint(10+v), "A burst", ""))
			}
		}
		p.shows("waiting 3")
	}
}

// breaking makes the sink unreachable while events arrive.
func breaking(p *page) {
	p.click("button", "Keep sending")
	value[bool](p, `(document.querySelector("#break-sink_down").click(), true)`)
	p.shows("sink down")
	p.until(`Number(document.querySelectorAll(".card dd")[2].innerText) > 20`)
}

// shrink makes the file of a picture smaller. It uses 256 colours, because a page has few colours.
func shrink(raw []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	few := image.NewPaletted(full.Bounds(), colours(full))
	draw.Draw(few, full.Bounds(), full, image.Point{}, draw.Src)
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few)
	return out.Bytes(), err
}

// colours returns the 256 most frequent colours of a picture.
func colours(of image.Image) color.Palette {
	flat := image.NewRGBA(of.Bounds())
	draw.Draw(flat, of.Bounds(), of, of.Bounds().Min, draw.Src)
	count := map[color.RGBA]int{}
	for y := flat.Rect.Min.Y; y < flat.Rect.Max.Y; y++ {
		for x := flat.Rect.Min.X; x < flat.Rect.Max.X; x++ {
			count[flat.RGBAAt(x, y)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(number(a), number(b)))
	})
	var p color.Palette
	for _, c := range all[:min(len(all), 256)] {
		p = append(p, c)
	}
	return p
}

func number(c color.RGBA) uint32 { return uint32(c.R)<<16 | uint32(c.G)<<8 | uint32(c.B) }
