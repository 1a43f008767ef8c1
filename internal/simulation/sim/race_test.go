//go:build race

package sim

// raceEnabled makes the long tests short: one coroutine runs at a time, so that there is little for
// the detector to find, slowly.
const raceEnabled = true
