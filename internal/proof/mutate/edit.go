// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// Edit is one small change of a file: To replaces From at an offset.
type Edit struct {
	File     string
	Line     int
	Offset   int
	From, To string
	Source   string // the text of the line before the edit
}

// String returns the place and the change.
func (e Edit) String() string {
	return fmt.Sprintf("%s:%d: `%s` becomes `%s`", e.File, e.Line, e.From, e.To)
}

// Apply returns the source with the edit.
func (e Edit) Apply(src []byte) []byte {
	out := append([]byte(nil), src[:e.Offset]...)
	out = append(out, e.To...)
	return append(out, src[e.Offset+len(e.From):]...)
}

// swapped maps each operator to its replacement. A comparison moves its boundary, == becomes !=, &&
// becomes ||, and + becomes -.
var swapped = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ,
	token.GEQ: token.GTR, token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD,
}

// Edits returns the possible edits of a file. The edits change operators, conditions, whole
// numbers, and statements that are calls or assignments.
func Edits(name string, src []byte) ([]Edit, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	lines := strings.Split(string(src), "\n")
	var edits []Edit
	at := func(pos token.Pos, from, to string) {
		p := files.Position(pos)
		edits = append(edits, Edit{
			File: name, Line: p.Line, Offset: p.Offset, From: from, To: to, Source: lines[p.Line-1],
		})
	}
	text := func(n ast.Node) string {
		return string(src[files.Position(n.Pos()).Offset:files.Position(n.End()).Offset])
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.IMPORT
		case *ast.BinaryExpr:
			if to, known := swapped[n.Op]; known {
				at(n.OpPos, n.Op.String(), to.String())
			}
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				at(n.OpPos, "!", "")
			}
		case *ast.IfStmt:
			at(n.Cond.Pos(), text(n.Cond), "!("+text(n.Cond)+")")
		case *ast.BasicLit:
			if v, err := strconv.Atoi(n.Value); n.Kind == token.INT && err == nil {
				at(n.Pos(), n.Value, strconv.Itoa(v+1))
			}
		case *ast.ExprStmt:
			at(n.Pos(), text(n), "")
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				at(n.Pos(), text(n), "")
			}
		}
		return true
	})
	return edits, nil
}
