// Package tree is a settings file as its syntax says it, before anything is known about its
// meaning: mappings in the order they were written, scalars as text, and the line of everything.
// JSON and YAML are read into the same tree. So one decoder judges both alike, and can say on which
// line a setting is wrong.
//
// Numbers stay text: nothing is rounded through a floating-point number.
package tree
