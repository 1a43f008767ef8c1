// Package deadlettertest is the conformance suite of [deadletter.Store]. It uses only the
// interface, and dead letters of its own. So it may run at the same time as others against shared
// storage.
package deadlettertest
