package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// dice is the one source of chance of a simulation.
type dice struct{ *rand.Rand }

func newDice(seed, stream uint64) dice { return dice{rand.New(rand.NewPCG(seed, stream))} }

// chance is true with probability p.
func (d dice) chance(p float64) bool { return p > 0 && d.Float64() < p }

// upTo is a duration in [0, most).
func (d dice) upTo(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(d.Int64N(int64(most)))
}

// within is a duration in [-most, most].
func (d dice) within(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return d.upTo(2*most+1) - most
}

// logUniform is a number between two bounds of which every order of magnitude is as likely.
func (d dice) logUniform(low, high float64) float64 {
	return low * math.Pow(high/low, d.Float64())
}

// oneOf picks an element.
func oneOf[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }
