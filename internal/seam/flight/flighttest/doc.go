// Package flighttest is the conformance suite of [flight.Store]. It uses only the interface, and
// flights of its own. So it may run at the same time as others against a shared bucket.
package flighttest
