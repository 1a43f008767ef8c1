// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/lullhq/lull/internal/config/tree"
)

var (
	errNotText   = errors.New("not UTF-8")
	errDocuments = errors.New("a second YAML document begins: keep one")
	errIndirect  = errors.New("anchors, aliases, merge keys and tags are not supported: write the value itself")
	errKey       = errors.New("a key is not plain text")
	errTooMany   = fmt.Errorf("more than %d words and marks", maxTokens)
)

// maxTokens corresponds to about 5,000 lines. The parser's memory grows with the square of the
// number of keys in a mapping.
const maxTokens = 16 << 10

// parse reads one YAML document into a tree. Errors are *tree.SyntaxError.
func parse(text []byte) (tree.Node, error) {
	switch {
	case len(text) > tree.MaxBytes:
		return tree.Node{}, &tree.SyntaxError{Line: 1, Err: tree.ErrTooLarge}
	case !utf8.Valid(text):
		return tree.Node{}, &tree.SyntaxError{Line: 1, Err: errNotText}
	}
	tokens := lexer.Tokenize(string(text))
	if err := judge(tokens); err != nil {
		return tree.Node{}, err
	}
	// The parser allows repeated keys. The decoder refuses them, together with all other faults.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return tree.Node{}, syntaxError(err)
	}
	var root tree.Node
	found := false
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if found {
			return tree.Node{}, &tree.SyntaxError{Line: line(doc.Body), Err: errDocuments}
		}
		found = true
		if root, err = node(doc.Body, 0); err != nil {
			return tree.Node{}, err
		}
	}
	return root, nil
}

// judge refuses a text before it is parsed, if the parser would need too much memory for it. Lists
// and groups in brackets can nest at every byte, and lists of lines at every second byte of one
// line. Indentation bounds how deeply lines below each other can nest, and node checks that depth
// exactly.
func judge(tokens token.Tokens) error {
	brackets, marks, at := 0, 0, 0
	for i, t := range tokens {
		refuse := func(err error) error { return &tree.SyntaxError{Line: t.Position.Line, Err: err} }
		if t.Position.Line != at {
			marks, at = 0, t.Position.Line
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType:
			marks++
		case token.AnchorType, token.AliasType, token.TagType:
			return refuse(errIndirect)
		}
		switch {
		case i >= maxTokens:
			return refuse(errTooMany)
		case brackets+marks > tree.MaxDepth+1:
			return refuse(tree.ErrTooDeep)
		}
	}
	return nil
}

// syntaxError returns the parser's message and line, without the parser's excerpt of the file. The
// excerpt may contain a secret.
func syntaxError(err error) error {
	var syntax yaml.Error
	if !errors.As(err, &syntax) {
		return &tree.SyntaxError{Line: 1, Err: errors.New("not YAML")}
	}
	at := 1
	if t := syntax.GetToken(); t != nil && t.Position != nil {
		at = t.Position.Line
	}
	message := syntax.GetMessage()
	if strings.Contains(message, `'\t'`) || strings.Contains(message, "'\t'") {
		message = "a tab cannot indent YAML: use spaces"
	}
	return &tree.SyntaxError{Line: at, Err: errors.New(message)}
}

func line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

func node(n ast.Node, depth int) (tree.Node, error) {
	at := line(n)
	if depth > tree.MaxDepth {
		return tree.Node{}, &tree.SyntaxError{Line: at, Err: tree.ErrTooDeep}
	}
	switch v := n.(type) {
	case *ast.NullNode:
		return tree.Node{Kind: tree.Null, Line: at}, nil
	case *ast.BoolNode:
		return tree.Node{Kind: tree.Bool, Line: at, Text: fmt.Sprint(v.Value)}, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return tree.Node{Kind: tree.Number, Line: at, Text: n.GetToken().Value}, nil
	case *ast.StringNode:
		return tree.Node{Kind: tree.String, Line: at, Text: v.Value}, nil
	case *ast.LiteralNode:
		return tree.Node{Kind: tree.String, Line: at, Text: v.Value.Value}, nil
	case *ast.SequenceNode:
		return items(v, depth)
	case *ast.MappingNode:
		return fields(v.Values, at, depth)
	case *ast.MappingValueNode:
		return fields([]*ast.MappingValueNode{v}, at, depth)
	default: // anchors, aliases, tags, merges, directives
		return tree.Node{}, &tree.SyntaxError{Line: at, Err: errIndirect}
	}
}

func items(v *ast.SequenceNode, depth int) (tree.Node, error) {
	list := tree.Node{Kind: tree.List, Line: line(v)}
	for _, value := range v.Values {
		item, err := node(value, depth+1)
		if err != nil {
			return tree.Node{}, err
		}
		list.Items = append(list.Items, item)
	}
	return list, nil
}

func fields(values []*ast.MappingValueNode, at, depth int) (tree.Node, error) {
	group := tree.Node{Kind: tree.Map, Line: at}
	for _, v := range values {
		key, err := keyOf(v.Key)
		if err != nil {
			return tree.Node{}, err
		}
		value, err := node(v.Value, depth+1)
		if err != nil {
			return tree.Node{}, err
		}
		group.Fields = append(group.Fields, tree.Field{Key: key, Line: line(v.Key), Value: value})
	}
	return group, nil
}

// keyOf returns the text of a key. A key without quotes, such as 2024 or true, is also text.
func keyOf(key ast.MapKeyNode) (string, error) {
	switch k := key.(type) {
	case *ast.StringNode:
		return k.Value, nil
	case *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode, *ast.NullNode:
		return k.GetToken().Value, nil
	case *ast.MergeKeyNode:
		return "", &tree.SyntaxError{Line: line(key), Err: errIndirect}
	default:
		return "", &tree.SyntaxError{Line: line(key), Err: errKey}
	}
}
