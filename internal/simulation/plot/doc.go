// SPDX-License-Identifier: Apache-2.0

// Package plot draws line charts as SVG for pages that show how a figure grows or changes over
// time. The same figures give the same bytes.
package plot
