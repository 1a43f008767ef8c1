// SPDX-License-Identifier: Apache-2.0

// Package tree holds a parsed settings file whose settings are not yet checked: mappings in the
// order they were written, scalars as text, and the line of every value. JSON and YAML are read
// into the same tree. So one decoder checks both formats, and can say on which line a setting is
// wrong.
//
// Numbers stay text, so no number is rounded to a floating-point number.
package tree
