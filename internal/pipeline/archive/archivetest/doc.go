// Package archivetest is the conformance suite of [archive.Store]. It uses times of its own and
// looks through the seam only, so it may run beside others against a shared bucket.
package archivetest
