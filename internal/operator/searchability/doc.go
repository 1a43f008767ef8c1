// SPDX-License-Identifier: Apache-2.0

// Package searchability answers whether a search finds a version of a document, in each sink of its
// collection. lull dev, the commands and the function searchable use it.
//
// What it promises:
//
//   - A yes is never too early. If the engine can be asked, it is yes only if a search finds the
//     version or a newer one. Otherwise it is yes only if the version is committed, and the refresh
//     interval that the settings promise is over since then.
//   - The refresh interval counts from a time at which the version was certainly in the engine:
//     from the read of the row that showed the commit, or from the row's own time and a lease more.
//     So clocks that differ by less than the guard do not matter.
//   - A question reads the document's rows and the health rows of its sinks, by their keys. It
//     never scans, and changes nothing.
//   - A long poll reads again after a pause that doubles, and ends in time.
package searchability
