// SPDX-License-Identifier: Apache-2.0

// Package deadlettertest is the conformance suite of [deadletter.Store]. The suite uses only the
// interface, and its own dead letters. So it may run at the same time as other tests against
// shared storage.
package deadlettertest
