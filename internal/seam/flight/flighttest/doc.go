// Package flighttest is the conformance suite of [flight.Store]. It uses flights of its own and
// looks through the seam only, so it may run beside others against a shared bucket.
package flighttest
