// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Fault is one thing that is wrong with the settings. Decode and Validate return all faults at
// once, as one joined error; Faults splits the joined error.
type Fault struct {
	// Rule names the rule that was broken; docs/settings.md lists them.
	Rule string
	// Setting is the dotted name as in lull.yaml, such as queues.visibility or
	// collections.news.quiet.
	Setting string
	// Value is the setting's value, as it is written in lull.yaml. It is empty if the setting has
	// no value. It never contains a password.
	Value string
	// Problem says what is wrong.
	Problem string
	// Fix says what to change, with names and numbers.
	Fix string
	// Line is the line of the file, from 1. It is 0 if the fault does not belong to one line.
	Line int
}

// Error returns the fault as one line.
func (f *Fault) Error() string {
	var b strings.Builder
	if f.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", f.Line)
	}
	b.WriteString(f.Setting)
	if f.Value != "" {
		fmt.Fprintf(&b, " (%s)", f.Value)
	}
	fmt.Fprintf(&b, ": %s: %s", f.Problem, f.Fix)
	return b.String()
}

// Faults returns every Fault in an error of this package, in order, even if the error was wrapped.
// If there is no Fault, it returns nil.
func Faults(err error) []*Fault {
	var all []*Fault
	for _, e := range Apart(err) {
		var fault *Fault
		if errors.As(e, &fault) {
			all = append(all, fault)
		}
	}
	return all
}

// Apart returns the errors that were joined, in their order. A [Fault] is returned without the text
// that was wrapped around it. Other errors are returned unchanged.
func Apart(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, Apart(e)...)
		}
		return all
	}
	var fault *Fault
	if inside := errors.Unwrap(err); inside != nil && errors.As(inside, &fault) {
		return Apart(inside)
	}
	return []error{err}
}

// maxFaults bounds how many faults are reported at once. A hostile file may have a fault every few
// bytes, and each fault starts a search for a similar name.
const maxFaults = 200

// faults gathers faults. It skips a fault that says the same words about the same setting as an
// earlier one.
type faults struct {
	list []*Fault
	seen map[[3]string]bool
}

// full reports whether the list has reached its limit, so that no more faults are added.
func (fs *faults) full() bool { return len(fs.list) > maxFaults }

// add adds a fault. It makes every part of the fault fit into one line of a log, because a file may
// contain any text.
func (fs *faults) add(f *Fault) {
	switch len(fs.list) {
	case maxFaults:
		f = &Fault{
			Rule: "form", Setting: "the file", Problem: fmt.Sprintf("has more than these %d faults", maxFaults),
			Fix: "correct these first",
		}
	case maxFaults + 1:
		return
	}
	f.Setting, f.Value, f.Problem, f.Fix = oneLine(f.Setting), oneLine(f.Value), oneLine(f.Problem), oneLine(f.Fix)
	key := [3]string{f.Rule, f.Setting, f.Problem}
	if fs.seen[key] {
		return
	}
	if fs.seen == nil {
		fs.seen = make(map[[3]string]bool)
	}
	fs.seen[key] = true
	fs.list = append(fs.list, f)
}

// longestPart bounds each part of a fault, in bytes. A name or a value in a fault may be any text
// from the file.
const longestPart = 500

// oneLine shortens a text and replaces what is not printable, so that it fits into one line of a
// log.
func oneLine(s string) string {
	if len(s) > longestPart {
		s = s[:longestPart] + "..."
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// mentions reports whether a setting has a fault already.
func (fs *faults) mentions(setting string) bool {
	return slices.ContainsFunc(fs.list, func(f *Fault) bool { return f.Setting == setting })
}

// err joins the faults. It returns nil if there are none.
func (fs *faults) err() error {
	errs := make([]error, len(fs.list))
	for i, f := range fs.list {
		errs[i] = f
	}
	return errors.Join(errs...)
}
