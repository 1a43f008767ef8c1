// SPDX-License-Identifier: Apache-2.0

// Package archivetest is the conformance suite of [archive.Store]. The suite chooses its own times
// and uses only the interface, so several runs may share a bucket.
package archivetest
