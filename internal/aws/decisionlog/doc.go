// SPDX-License-Identifier: Apache-2.0

// Package decisionlog writes the decisions of a deployed function to its log.
//
// What it promises:
//
//   - Each line is one JSON object. Decisions that an operator must see have the level WARN or
//     ERROR. Decisions that an auditor needs have INFO. Decisions that only explain have DEBUG, and
//     cost nothing unless the function's log level is DEBUG.
//   - An invocation writes a limited number of lines for each step. A last line says how many lines
//     were omitted. There is no limit for audited steps, and for steps at DEBUG.
//   - A line never contains content of a document, because notes contain none.
package decisionlog
