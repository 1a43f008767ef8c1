package setting

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
	UnitRate     Unit = "number a second"
	UnitFlag     Unit = "true or false"
	UnitChoice   Unit = "choice"
	UnitText     Unit = "text"
	UnitList     Unit = "list"
)

// Setting describes one setting: what docs/settings.md says about it, and what its value is held
// to.
type Setting struct {
	// Name is the dotted name. <name> stands for any name of a source, collection or sink, [] for
	// any element of a list. In a [Kind] the name begins below the source or sink.
	Name string
	Unit Unit
	// Min and Max are inclusive bounds for durations (nanoseconds), sizes (bytes), counts
	// and rates (thousandths).
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

// CheckNumber holds a number to the setting's bounds. Empty texts mean that it fits.
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

// CheckText holds a text, or one element of a list, to the setting's choices or pattern. Empty
// texts mean that it fits.
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
		return "is not one of its values", fix
	}
	if s.Pattern == nil || s.Pattern.MatchString(value) {
		return "", ""
	}
	if value == "" {
		return "is empty", "write " + s.Shape
	}
	return "is not " + s.Shape, "write " + s.Shape
}

// Duration describes a duration between two bounds. A step other than 0 allows its multiples only.
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

// Text describes a text that matches pattern, which shape puts into words. A nil pattern allows
// any.
func Text(name string, pattern *regexp.Regexp, shape, doc string) Setting {
	return Setting{Name: name, Unit: UnitText, Pattern: pattern, Shape: shape, Doc: doc}
}

// List describes a list of texts that match pattern each, which shape puts into words.
func List(name string, pattern *regexp.Regexp, shape, doc string) Setting {
	return Setting{Name: name, Unit: UnitList, Pattern: pattern, Shape: shape, Doc: doc}
}

var pointerPattern = regexp.MustCompile(`^(/([^~/]|~[01])*)*$`)

const pointerShape = "a JSON pointer such as /details/title"

// Pointer describes a JSON pointer (RFC 6901).
func Pointer(name, doc string) Setting { return Text(name, pointerPattern, pointerShape, doc) }

// Pointers describes a list of JSON pointers.
func Pointers(name, doc string) Setting { return List(name, pointerPattern, pointerShape, doc) }

// Otherwise says in words what the default is where it follows from something else.
func (s Setting) Otherwise(words string) Setting {
	s.Default = words
	return s
}
