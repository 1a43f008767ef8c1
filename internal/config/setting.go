package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Unit is what a setting's value counts or is.
type Unit string

// The units.
const (
	UnitDuration Unit = "duration"
	UnitSize     Unit = "size"
	UnitCount    Unit = "count"
	UnitFlag     Unit = "true or false"
	UnitChoice   Unit = "choice"
	UnitText     Unit = "text"
	UnitList     Unit = "list"
)

// Setting describes one setting: what docs/settings.md says about it and what Validate holds it to.
type Setting struct {
	// Name is the dotted name. <name> stands for any name of a source, collection or sink, [] for
	// any element of a list.
	Name string
	Unit Unit
	// Min and Max are inclusive bounds for durations (nanoseconds), sizes (bytes) and counts.
	Min, Max int64
	// Step is the unit of which a duration must be a multiple; 0 for none.
	Step time.Duration
	// Choices are the values of a choice.
	Choices []string
	// Pattern is what text, or every element of a list of texts, must match whole. Nil for any
	// text.
	Pattern *regexp.Regexp
	// Shape says in words what Pattern demands.
	Shape string
	// Default is the default in words where it follows from something else. Empty where it is a
	// plain value.
	Default string
	// Doc says what the setting does, in one sentence.
	Doc string
}

// Bounds returns what the setting's value must be, in words: a range, the choices or the shape.
func (s Setting) Bounds() string {
	switch s.Unit {
	case UnitDuration, UnitSize, UnitCount:
		bounds := s.format(s.Min) + " to " + s.format(s.Max)
		switch {
		case s.Step == time.Minute:
			bounds += ", whole minutes"
		case s.Step > 0:
			bounds += ", whole seconds"
		}
		return bounds
	case UnitChoice:
		return strings.Join(s.Choices, ", ")
	case UnitFlag:
		return string(UnitFlag)
	default:
		if s.Shape == "" {
			return "any"
		}
		return s.Shape
	}
}

// format writes a number in the setting's unit.
func (s Setting) format(n int64) string {
	switch s.Unit {
	case UnitDuration:
		return FormatDuration(time.Duration(n))
	case UnitSize:
		return Size(n).String()
	default:
		return strconv.FormatInt(n, 10)
	}
}

// number judges a number.
func (s Setting) number(n int64) (problem, fix string) {
	switch {
	case n < s.Min:
		return "is less than " + s.format(s.Min), "raise it to at least " + s.format(s.Min)
	case n > s.Max:
		return "is more than " + s.format(s.Max), "lower it to at most " + s.format(s.Max)
	case s.Step > 0 && n%int64(s.Step) != 0:
		unit := "seconds"
		if s.Step == time.Minute {
			unit = "minutes"
		}
		below := n - n%int64(s.Step)
		return "is not a whole number of " + unit,
			fmt.Sprintf("write %s or %s", s.format(max(below, s.Min)), s.format(min(below+int64(s.Step), s.Max)))
	}
	return "", ""
}

// text judges a text, or one element of a list.
func (s Setting) text(value string) (problem, fix string) {
	if s.Unit == UnitChoice {
		if slices.Contains(s.Choices, value) {
			return "", ""
		}
		fix = "write one of " + strings.Join(s.Choices, ", ")
		if near := nearest(value, s.Choices); near != "" {
			fix = fmt.Sprintf("did you mean %q? Write one of %s", near, strings.Join(s.Choices, ", "))
		}
		if value == "" {
			return "is missing", fix
		}
		return "is none of its values", fix
	}
	if s.Pattern == nil || s.Pattern.MatchString(value) {
		return "", ""
	}
	if value == "" {
		return "is empty", "write " + s.Shape
	}
	return "is not " + s.Shape, "write " + s.Shape
}
