// Package deadlettertest is the conformance suite of [deadletter.Store]. It uses dead letters of
// its own and looks through the seam only, so it may run beside others against shared storage.
package deadlettertest
