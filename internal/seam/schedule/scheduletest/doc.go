// SPDX-License-Identifier: Apache-2.0

// Package scheduletest is the conformance suite of [schedule.Store]. The suite uses only the
// interface, and its own items. So it may run at the same time as other tests against shared
// storage.
package scheduletest
