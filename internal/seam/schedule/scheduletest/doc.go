// Package scheduletest is the conformance suite of [schedule.Store]. It uses items of its own and
// looks through the seam only, so it may run beside others against shared storage.
package scheduletest
