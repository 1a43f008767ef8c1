// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/terminal"
)

// Bounds of --every. A stack on AWS needs about ten requests each time.
const (
	minEvery = 250 * time.Millisecond
	maxEvery = time.Hour
)

// watchStatus shows the status again and again, until Ctrl-C. Only the first request must succeed.
// Later the stack may be unreachable for a moment, such as a 'lull dev' that restarts.
func watchStatus(ctx context.Context, std *streams, api operate.API, every time.Duration) error {
	if every < minEvery || every > maxEvery {
		return usagef("--every %s: want %s to %s", every, minEvery, maxEvery)
	}
	show := func(s operate.Status, err error) error { return appendStatus(std, s, err) }
	if f, ok := tty(std.out); ok && std.output == "table" && showColours(f) {
		show = func(s operate.Status, err error) error { return drawStatus(f, std.look, every, s, err) }
	}
	var last operate.Status
	for asked := false; ; asked = true {
		s, failure := api.Status(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // Ctrl-C is the normal end of a watch
		}
		switch {
		case failure != nil && !asked:
			return failure
		case failure == nil:
			last = s
		}
		if err := show(last, failure); err != nil {
			return err
		}
		if sleep(ctx, every) != nil {
			return nil //nolint:nilerr // Ctrl-C, too
		}
	}
}

// appendStatus prints one line. If the stack did not answer, it prints the error to standard error.
func appendStatus(std *streams, s operate.Status, failure error) error {
	now := time.Now().UTC().Format(time.RFC3339)
	if failure != nil {
		terminal.Printf(std.err, "%s  %s\n", now, failure)
		return nil
	}
	if std.output == "json" {
		return json.NewEncoder(std.out).Encode(s)
	}
	var visible, held, delayed int
	for _, q := range s.Queues {
		visible, held, delayed = visible+q.Visible, held+q.InFlight, delayed+q.Delayed
	}
	var sinks []string
	for _, k := range s.Sinks {
		if k.Pause != nil {
			sinks = append(sinks, "sink "+k.Sink+" paused")
		} else if k.Open {
			sinks = append(sinks, "sink "+k.Sink+" unhealthy")
		}
	}
	for _, wrong := range s.Wrong {
		sinks = append(sinks, "wrong: "+wrong)
	}
	line := fmt.Sprintf("%d visible, %d held, %d delayed, %d flights, %d scheduled, %d dead letters", visible, held, delayed,
		s.Flights, s.Scheduled, s.Letters)
	terminal.Printf(std.out, "%s  %s\n", now, strings.Join(append([]string{line}, sinks...), ", "))
	return nil
}

// drawStatus replaces what is on the screen, line by line, so that nothing flickers.
func drawStatus(f *os.File, l look, every time.Duration, s operate.Status, err error) error {
	columns, rows := 0, 1<<10 // for a terminal that does not report its size
	if c, r, err := term.GetSize(int(f.Fd())); err == nil {
		columns, rows = c, r
	}
	if l.wide {
		columns = 0
	}
	var text bytes.Buffer
	w := terminal.NewWriter(&text)
	w.Colour(l.colour == colourAlways || l.colour == colourAuto && welcome(f))
	page := newSheet(w, columns)
	terminal.Printf(page, "%s every %s: Ctrl-C ends it\n", time.Now().Format(time.TimeOnly), every)
	if err != nil {
		terminal.Printf(page, "%s\n", bad("no answer: %s", err))
	}
	fmt.Fprintln(page)
	showStatus(page, s)
	if err := page.Flush(); err != nil {
		return err
	}
	const home, restOfLine, restOfScreen = "\x1b[H", "\x1b[K", "\x1b[J"
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	lines = lines[:min(len(lines), max(rows-1, 1))]
	_, err = f.WriteString(home + strings.Join(lines, restOfLine+"\n") + restOfLine + "\n" + restOfScreen)
	return err
}
