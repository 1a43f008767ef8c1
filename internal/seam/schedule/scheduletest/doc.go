// Package scheduletest is the conformance suite of [schedule.Store]. It uses only the interface,
// and items of its own. So it may run at the same time as others against shared storage.
package scheduletest
