// SPDX-License-Identifier: Apache-2.0

package model

import "slices"

// A stuck state is one from which free edges reach no settled state. Reaching one would need
// another fault or an operator. All states that follow a stuck state are stuck as well. The story
// that shows most leads to the end of a stuck path: states that free edges never leave. Such an end
// is a single state without free edges, or a circle.

// stuck looks for such an end and tells the story of the first one that it finds.
func (x *explorer[S]) stuck() {
	x.starts = append(x.starts, uint64(len(x.free)))
	fine := make([]bool, x.states.size())
	for i := range fine {
		fine[i] = x.m.Settled(*x.states.at(i))
	}
	x.leadTo(fine)
	end, found := x.firstEnd(fine)
	if !found {
		return
	}
	x.result.Stuck = true
	x.result.Path = x.path(end)
	if circle := x.circle(end); len(circle) > 0 {
		x.result.Round = len(x.result.Path) + 1
		x.result.Path = append(x.result.Path, circle...)
	}
}

// leadTo also marks the states from which free edges lead to a marked state. Most edges lead to
// higher numbers. Going from the last state to the first therefore marks nearly all of them in one
// pass.
func (x *explorer[S]) leadTo(marked []bool) {
	for changed := true; changed; {
		changed = false
		for i := len(marked) - 1; i >= 0; i-- {
			if !marked[i] && slices.ContainsFunc(x.freeEdges(uint32(i)), func(to uint32) bool { return marked[to] }) {
				marked[i], changed = true, true
			}
		}
	}
}

// reach returns the states that free edges reach from a state. Each has its predecessor on a
// shortest way.
func (x *explorer[S]) reach(from uint32) map[uint32]uint32 {
	by := map[uint32]uint32{}
	for queue := []uint32{from}; len(queue) > 0; queue = queue[1:] {
		for _, to := range x.freeEdges(queue[0]) {
			if _, seen := by[to]; !seen {
				by[to] = queue[0]
				queue = append(queue, to)
			}
		}
	}
	return by
}

// firstEnd returns the lowest state of an end: every state that it leads to also leads back.
// firstEnd ignores states that are fine. A state that leads to a known end counts as fine.
func (x *explorer[S]) firstEnd(fine []bool) (first uint32, found bool) {
	for n := range fine {
		for at := uint32(n); !fine[at]; {
			back := slices.Clone(fine)
			back[at] = true
			x.leadTo(back)
			out, end := at, at // out is the highest state from which no free edge leads back
			for to := range x.reach(at) {
				if end = min(end, to); !back[to] && (out == at || to > out) {
					out = to
				}
			}
			if out != at {
				at = out
				continue
			}
			if !found || end < first {
				first, found = end, true
			}
			fine = back
		}
	}
	return first, found
}

// circle returns the shortest way by free edges from a state back to itself, or nil if there is
// none.
func (x *explorer[S]) circle(start uint32) []Step[S] {
	by := x.reach(start)
	if _, round := by[start]; !round {
		return nil
	}
	chain := []uint32{start}
	for n := by[start]; n != start; n = by[n] {
		chain = append(chain, n)
	}
	chain = append(chain, start)
	slices.Reverse(chain)
	return x.steps(chain, func(e Edge[S], _ bool) bool { return e.Free })
}
