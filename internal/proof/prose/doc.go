// SPDX-License-Identifier: Apache-2.0

// Package prose checks that documents, comments and texts are in plain English. The check finds
// private words that the glossary replaced, "is no X", sentences over 25 words, and lines over 100
// columns. A page must also say who it is for, link the glossary, and end with where to go next.
//
// The rules are those of CONTRIBUTING.md, "Plain English". Code spans, tables and figures may
// contain longer sentences, but the words are checked everywhere.
package prose
