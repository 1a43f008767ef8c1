// Package decisionlog writes the decisions of a deployed function to its log.
//
// What it promises:
//
//   - Each line is one JSON object. Decisions that an operator must see have the level WARN or
//     ERROR. Decisions that an auditor needs have INFO. Decisions that only explain have DEBUG, and
//     cost nothing unless the function's log level is DEBUG.
//   - A step gets a few lines per invocation, and a last line says how many were left out. An
//     audited step gets all its lines, and so does a step at DEBUG.
//   - A line never holds a document's content: notes have none.
package decisionlog
