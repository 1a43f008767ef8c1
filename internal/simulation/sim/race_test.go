// SPDX-License-Identifier: Apache-2.0

//go:build race

package sim

// raceEnabled makes the long tests short. Only one coroutine runs at a time, so the race detector
// is slow and finds little.
const raceEnabled = true
