// Package plot draws line charts as SVG, for pages that have to show how something grows or passes.
// The same figures give the same bytes.
package plot
