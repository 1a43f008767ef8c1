// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// dice is the only source of randomness in a simulation.
type dice struct{ *rand.Rand }

func newDice(seed, stream uint64) dice { return dice{rand.New(rand.NewPCG(seed, stream))} }

// chance returns true with probability p.
func (d dice) chance(p float64) bool { return p > 0 && d.Float64() < p }

// upTo returns a random duration in [0, most).
func (d dice) upTo(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(d.Int64N(int64(most)))
}

// within returns a random duration in [-most, most].
func (d dice) within(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return d.upTo(2*most+1) - most
}

// logUniform returns a random number between two bounds. Each order of magnitude is equally likely.
func (d dice) logUniform(low, high float64) float64 {
	return low * math.Pow(high/low, d.Float64())
}

// oneOf returns a random element of a list.
func oneOf[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }
