// Package rebuild replaces the index of a collection during live traffic (design section 15, ADR
// 0035). It fills a new index, compares it with the index in use, and then switches readers to it.
//
// A row of the table stores the progress, so a program that resumes a killed rebuild continues
// where it stopped. Every step may be repeated. One program drives a rebuild at a time: it holds
// the lease of that row.
package rebuild
