// Package decisionlog writes the decisions of a deployed function to its log.
//
// What it promises:
//
//   - What an operator must see is a line, one JSON object, at level WARN or ERROR. What an auditor
//     asks for is at INFO. What only explains is at DEBUG, and costs nothing unless the function's
//     log level asks for it.
//   - A step gets a few lines per invocation, and a last line says how many were left out. A step
//     that an audit asks for gets all its lines, as do those at DEBUG.
//   - A line never holds a document's content: notes have none.
package decisionlog
