// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The reasons for which text is not a tree.
var (
	ErrTooLarge   = fmt.Errorf("larger than %d bytes", MaxBytes)
	ErrTooDeep    = fmt.Errorf("nested more than %d deep", MaxDepth)
	errTrailing   = errors.New("text follows the settings")
	errUnfinished = errors.New("ends in the middle")
	errKey        = errors.New("a key lacks quotes")
)

// SyntaxError says that the text does not have the file's format. An error of this package wraps a
// SyntaxError if the line is known.
type SyntaxError struct {
	Line int
	Err  error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong, without the line.
func (e *SyntaxError) Unwrap() error { return e.Err }

// ParseJSON reads one JSON value. Errors are *SyntaxError.
func ParseJSON(text []byte) (Node, error) {
	if len(text) > MaxBytes {
		return Node{}, &SyntaxError{Line: 1, Err: ErrTooLarge}
	}
	p := parser{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	p.dec.UseNumber()
	node, err := p.value(0)
	if err == nil {
		if _, more := p.dec.Token(); !errors.Is(more, io.EOF) {
			err = errTrailing
		}
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errUnfinished
		}
		return Node{}, &SyntaxError{Line: p.line(), Err: err}
	}
	return node, nil
}

type parser struct {
	text []byte
	dec  *json.Decoder
	// lines is the number of line ends in the text up to the offset read. So each line end is
	// counted only once.
	read, lines int
}

// line returns the line of the token read last.
func (p *parser) line() int {
	to := min(int(p.dec.InputOffset()), len(p.text))
	p.lines += bytes.Count(p.text[p.read:to], []byte{'\n'})
	p.read = to
	return p.lines + 1
}

func (p *parser) value(depth int) (Node, error) {
	token, err := p.dec.Token()
	if err != nil {
		return Node{}, err
	}
	node := Node{Line: p.line()}
	switch t := token.(type) {
	case nil:
	case bool:
		node.Kind, node.Text = Bool, fmt.Sprint(t)
	case json.Number:
		node.Kind, node.Text = Number, t.String()
	case string:
		node.Kind, node.Text = String, t
	case json.Delim:
		if depth >= MaxDepth {
			return Node{}, ErrTooDeep
		}
		if t == '[' {
			node.Kind = List
			err = p.items(&node, depth+1)
		} else {
			node.Kind = Map
			err = p.fields(&node, depth+1)
		}
	}
	return node, err
}

func (p *parser) items(node *Node, depth int) error {
	for p.dec.More() {
		item, err := p.value(depth)
		if err != nil {
			return err
		}
		node.Items = append(node.Items, item)
	}
	_, err := p.dec.Token()
	return err
}

func (p *parser) fields(node *Node, depth int) error {
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok {
			return errKey
		}
		line := p.line()
		value, err := p.value(depth)
		if err != nil {
			return err
		}
		node.Fields = append(node.Fields, Field{Key: key, Line: line, Value: value})
	}
	_, err := p.dec.Token()
	return err
}
