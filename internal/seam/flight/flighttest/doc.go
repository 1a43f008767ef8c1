// SPDX-License-Identifier: Apache-2.0

// Package flighttest is the conformance suite of [flight.Store]. The suite uses only the interface,
// and its own flights. So it may run at the same time as other tests against a shared bucket.
package flighttest
