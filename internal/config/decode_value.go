// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/lullhq/lull/internal/config/tree"
)

// quantity decodes a duration, a size or a rate.
func (d *decoder) quantity(q quantity, n tree.Node, v reflect.Value, p at) {
	if n.Kind != tree.String && n.Kind != tree.Number {
		d.unexpected(n, v, p)
		return
	}
	number, err := q.parse(n.Text)
	if err != nil {
		problem, fix, _ := strings.Cut(err.Error(), ": ")
		d.wrong(n, p, "is "+problem, fix)
		return
	}
	v.SetInt(number)
	d.bounds(n, v, p)
}

// scalar decodes a text, a flag or a number. It refuses a value of another kind and converts
// nothing.
func (d *decoder) scalar(n tree.Node, v reflect.Value, p at) {
	switch {
	case v.Kind() == reflect.String && n.Kind == tree.String:
		v.SetString(n.Text)
	case v.Kind() == reflect.Bool && n.Kind == tree.Bool:
		v.SetBool(n.Text == "true")
	case (v.Kind() == reflect.Int || v.Kind() == reflect.Uint32) && n.Kind == tree.Number:
		number, err := wholeNumber(n.Text)
		if err != nil || v.Kind() == reflect.Uint32 && (number < 0 || number > math.MaxUint32) {
			d.wrong(n, p, "is not a whole number of a usable size", "write digits, such as 1000")
			return
		}
		if v.Kind() == reflect.Uint32 {
			v.SetUint(uint64(number))
		} else {
			v.SetInt(number)
		}
	default:
		d.unexpected(n, v, p)
		return
	}
	d.bounds(n, v, p)
}

var wholePattern = regexp.MustCompile(`^-?(0|[1-9][0-9]*(_[0-9]{3})*)$`)

// wholeNumber reads a number of plain digits. The digits may be in groups of three, such as 80_000.
// Octal and hexadecimal spellings are refused.
func wholeNumber(text string) (int64, error) {
	if !wholePattern.MatchString(text) {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
}

// unexpected refuses a value of a wrong kind.
func (d *decoder) unexpected(n tree.Node, v reflect.Value, p at) {
	want, fix := "text", "put it in quotes"
	q, isQuantity := quantities[v.Type()]
	switch {
	case isQuantity:
		want, fix = q.is, q.fix
	case v.Kind() == reflect.Bool:
		want, fix = "true or false", "write true or false without quotes"
	case v.Kind() != reflect.String:
		want, fix = "a whole number", "write digits without quotes, such as 1000"
	case n.Kind == tree.List || n.Kind == tree.Map:
		fix = "write one text"
	}
	if n.Kind == tree.Null {
		fix = "give it a value or remove the line"
	}
	d.wrong(n, p, "is "+n.Kind.String()+" where "+want+" is expected", fix)
}

// bounds adds a fault if a value is out of bounds. The value is never clamped (promise 7).
func (d *decoder) bounds(n tree.Node, v reflect.Value, p at) {
	if f := judge(p, v, d.kinds); f != nil {
		f.Line = n.Line
		d.add(f)
	}
}
