// Package rebuild fills a new index of a collection beside the one in use and compares the two.
// Then it puts the new one in its place, beside live traffic (design section 15, ADR 0035).
//
// What is done is kept in a row of the table, so that whoever resumes a rebuild goes on where it
// was killed. Every step may be repeated. One program drives a rebuild at a time: it holds the
// lease of that row.
package rebuild
