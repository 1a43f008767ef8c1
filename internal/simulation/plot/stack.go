// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"strings"
)

// panelHigh is the height of one chart of a stack in pixels.
const panelHigh = 210

// Stack draws charts below each other in one picture. The charts share only the horizontal axis.
func Stack(title string, panels ...Plot) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" role="img" `+
			`aria-label="%s">`+"\n", wide, panelHigh*len(panels), escape(title))
	for i, p := range panels {
		b.WriteString(p.draw(panelHigh, fmt.Sprintf(`y="%d" width="%d" height="%d"`, i*panelHigh, wide, panelHigh)))
	}
	b.WriteString("</svg>\n")
	return b.String()
}
