// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Unit is the unit or the type of a setting's value.
type Unit string

// The units.
const (
	UnitDuration Unit = "duration"
	UnitSize     Unit = "size"
	UnitCount    Unit = "count"
	UnitRate     Unit = "number a second"
	UnitFlag     Unit = "true or false"
	UnitChoice   Unit = "choice"
	UnitText     Unit = "text"
	UnitList     Unit = "list"
)

// Setting describes one setting: its text in docs/settings.md, and the bounds of its value.
type Setting struct {
	// Name is the dotted name. <name> is any name of a source, collection or sink, and [] is any
	// element of a list. In a [Kind], the name is relative to the source or sink.
	Name string
	Unit Unit
	// Min and Max are inclusive bounds for durations (nanoseconds), sizes (bytes), counts
	// and rates (thousandths).
	Min, Max int64
	// Step requires that a duration is a multiple of Step. 0 allows any duration.
	Step time.Duration
	// Choices are the values of a choice.
	Choices []string
	// Pattern must match the whole text, or the whole of every element of a list of texts. Nil
	// allows any text.
	Pattern *regexp.Regexp
	// Shape describes Pattern in words.
	Shape string
	// Default describes the default in words if it follows from other settings. It is empty if the
	// default is a plain value.
	Default string
	// Doc says in one sentence what the setting does.
	Doc string
}

// Bounds returns the allowed values in words: a range, the choices or the shape.
func (s Setting) Bounds() string {
	switch s.Unit {
	case UnitDuration, UnitSize, UnitCount, UnitRate:
		bounds := s.Format(s.Min) + " to " + s.Format(s.Max)
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

// IsNumber reports whether the setting's value is a number in its unit.
func (s Setting) IsNumber() bool {
	return slices.Contains([]Unit{UnitDuration, UnitSize, UnitCount, UnitRate}, s.Unit)
}

// Format writes a number in the setting's unit.
func (s Setting) Format(n int64) string {
	switch s.Unit {
	case UnitDuration:
		return FormatDuration(time.Duration(n))
	case UnitSize:
		return Size(n).String()
	case UnitRate:
		return Rate(n).String()
	default:
		return strconv.FormatInt(n, 10)
	}
}

// CheckNumber checks a number against the setting's bounds. If the number is allowed, it returns
// two empty texts.
func (s Setting) CheckNumber(n int64) (problem, fix string) {
	switch {
	case n < s.Min:
		return "is less than " + s.Format(s.Min), "raise it to at least " + s.Format(s.Min)
	case n > s.Max:
		return "is more than " + s.Format(s.Max), "lower it to at most " + s.Format(s.Max)
	case s.Step > 0 && n%int64(s.Step) != 0:
		unit := "seconds"
		if s.Step == time.Minute {
			unit = "minutes"
		}
		below := n - n%int64(s.Step)
		return "is not a whole number of " + unit,
			fmt.Sprintf("write %s or %s", s.Format(max(below, s.Min)), s.Format(min(below+int64(s.Step), s.Max)))
	}
	return "", ""
}

// CheckText checks a text, or one element of a list, against the setting's choices or pattern. If
// the text is allowed, it returns two empty texts.
func (s Setting) CheckText(value string) (problem, fix string) {
	if s.Unit == UnitChoice {
		if slices.Contains(s.Choices, value) {
			return "", ""
		}
		fix = "write one of " + strings.Join(s.Choices, ", ")
		if near := Nearest(value, s.Choices); near != "" {
			fix = fmt.Sprintf("did you mean %q? Write one of %s", near, strings.Join(s.Choices, ", "))
		}
		if value == "" {
			return "is missing", fix
		}
		return "is not one of the allowed values", fix
	}
	if s.Pattern == nil || s.Pattern.MatchString(value) {
		return "", ""
	}
	if value == "" {
		return "is empty", "write " + s.Shape
	}
	return "is not " + s.Shape, "write " + s.Shape
}

// Duration describes a duration between two bounds. A step other than 0 allows only multiples of
// the step.
func Duration(name string, from, to, step time.Duration, doc string) Setting {
	return Setting{Name: name, Unit: UnitDuration, Min: int64(from), Max: int64(to), Step: step, Doc: doc}
}

// Count describes a whole number between two bounds.
func Count(name string, from, to int64, doc string) Setting {
	return Setting{Name: name, Unit: UnitCount, Min: from, Max: to, Doc: doc}
}

// Bytes describes a [Size] between two bounds.
func Bytes(name string, from, to Size, doc string) Setting {
	return Setting{Name: name, Unit: UnitSize, Min: int64(from), Max: int64(to), Doc: doc}
}

// PerSecond describes a [Rate] between two bounds.
func PerSecond(name string, from, to Rate, doc string) Setting {
	return Setting{Name: name, Unit: UnitRate, Min: int64(from), Max: int64(to), Doc: doc}
}

// Flag describes a setting that is true or false.
func Flag(name, doc string) Setting { return Setting{Name: name, Unit: UnitFlag, Doc: doc} }

// Choice describes a text that is one of the choices.
func Choice(name, doc string, choices ...string) Setting {
	return Setting{Name: name, Unit: UnitChoice, Choices: choices, Doc: doc}
}

// Text describes a text that matches pattern. shape describes the pattern in words. A nil pattern
// allows any text.
func Text(name string, pattern *regexp.Regexp, shape, doc string) Setting {
	return Setting{Name: name, Unit: UnitText, Pattern: pattern, Shape: shape, Doc: doc}
}

// List describes a list of texts that each match pattern. shape describes the pattern in words.
func List(name string, pattern *regexp.Regexp, shape, doc string) Setting {
	return Setting{Name: name, Unit: UnitList, Pattern: pattern, Shape: shape, Doc: doc}
}

var pointerPattern = regexp.MustCompile(`^(/([^~/]|~[01])*)*$`)

const pointerShape = "a JSON pointer such as /details/title"

// Pointer describes a JSON pointer (RFC 6901).
func Pointer(name, doc string) Setting { return Text(name, pointerPattern, pointerShape, doc) }

// Pointers describes a list of JSON pointers.
func Pointers(name, doc string) Setting { return List(name, pointerPattern, pointerShape, doc) }

// Otherwise sets the default in words, for a default that follows from other settings.
func (s Setting) Otherwise(words string) Setting {
	s.Default = words
	return s
}
