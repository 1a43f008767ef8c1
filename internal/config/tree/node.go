// SPDX-License-Identifier: Apache-2.0

package tree

// Kind is the kind of a node.
type Kind int

// The kinds of nodes.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Map
)

// String returns the kind in the words of an error message.
func (k Kind) String() string {
	switch k {
	case Null:
		return "nothing"
	case Bool:
		return "true or false"
	case Number:
		return "a number"
	case String:
		return "text"
	case List:
		return "a list"
	default:
		return "a group of settings"
	}
}

// Node is one value of a settings file.
type Node struct {
	Kind Kind
	// Line is the line on which the value begins, from 1. It is 0 if the line is not known.
	Line int
	// Text is the scalar: a string's value, a number as it was written, "true" or "false". It is
	// empty for the other kinds.
	Text string
	// Items are the elements of a list.
	Items []Node
	// Fields are the entries of a mapping, in the order they were written. A key may occur twice:
	// the decoder refuses it.
	Fields []Field
}

// Field is one entry of a mapping.
type Field struct {
	Key   string
	Line  int
	Value Node
}

// MaxBytes is the largest settings file that is read. A file of a thousand collections has about a
// sixth of MaxBytes.
const MaxBytes = 256 << 10

// MaxDepth is how deeply a settings file may nest. Valid settings nest at most 5 deep.
const MaxDepth = 32
