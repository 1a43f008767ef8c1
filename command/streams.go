// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/terminal"
)

// streams are where a command reads and writes, and how it prints its answer.
type streams struct {
	in       io.Reader
	out, err *terminal.Writer // both escape what a sender may have chosen
	look     look
	output   string // table or json
}

func (std *streams) outputFlag() option {
	return flag("output,o", &std.output, "`FORMAT` of the answer: table or json")
}

func (std *streams) checkOutput() error {
	if std.output != "table" && std.output != "json" {
		return usagef("-o %s: want table or json", std.output)
	}
	return nil
}

// print writes the answer as JSON, or as a table by f.
func (std *streams) print(v any, f func(w io.Writer)) error {
	if std.output == "json" {
		enc := json.NewEncoder(std.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	w := newSheet(std.out, std.look.width(std.out))
	f(w)
	return w.Flush()
}

// line prints a line of an answer that comes line by line: v as JSON, or the cells that are not
// empty.
func (std *streams) line(v any, cells ...string) {
	if std.output == "json" {
		_ = json.NewEncoder(std.out).Encode(v) // if this line cannot be printed, the counts still show it
		return
	}
	terminal.Printf(std.out, "%s\n", spaced(cells...))
}

// last prints the last line of such an answer, or a table by f.
func (std *streams) last(v any, f func(w io.Writer)) error {
	if std.output == "json" {
		return json.NewEncoder(std.out).Encode(v)
	}
	return std.print(v, f)
}

// spaced joins the cells that are not empty to one line.
func spaced(cells ...string) string {
	return strings.Join(slices.DeleteFunc(cells, func(cell string) bool { return cell == "" }), "  ")
}
