// Package prose holds documents, comments and texts to plain English, so that they stay
// so: the private words that the glossary replaced, "is no X", sentences over 25 words, and lines over
// 100 columns. A page also says who it is for, links the glossary, and ends with where to go next.
//
// The rules are those of CONTRIBUTING.md, "Plain English". Code spans, tables and figures may
// hold longer sentences; the words are checked everywhere.
package prose
