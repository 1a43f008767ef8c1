package model

import "slices"

// A stuck state is one from which no settled state can be reached by free edges: without another
// fault, and without anybody's help. Whatever follows is stuck as well. The story that shows most
// leads to where it ends: the states that free edges never leave, be it one state where nothing
// moves any more or a circle.

// stuck looks for such an end and tells the story of the first one.
func (x *explorer[S]) stuck() {
	x.starts = append(x.starts, uint64(len(x.free)))
	end, found := x.firstEnd(x.reachSettled())
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

// reachSettled marks the states from which free edges lead to a settled one. Most edges lead to
// higher numbers. Going from the last state to the first therefore marks nearly all of them at
// once.
func (x *explorer[S]) reachSettled() []bool {
	fine := make([]bool, x.states.size())
	for i := range fine {
		fine[i] = x.m.Settled(*x.states.at(i))
	}
	for changed := true; changed; {
		changed = false
		for i := len(fine) - 1; i >= 0; i-- {
			if !fine[i] && slices.ContainsFunc(x.ways(uint32(i)), func(to uint32) bool { return fine[to] }) {
				fine[i], changed = true, true
			}
		}
	}
	return fine
}

// firstEnd is the lowest number in a strongly connected component that no free edge leaves, among
// the states that are not fine: Tarjan's algorithm.
func (x *explorer[S]) firstEnd(fine []bool) (first uint32, found bool) {
	order, low := make([]uint32, len(fine)), make([]uint32, len(fine)) // 0: not seen
	open := make([]bool, len(fine))                                    // on the stack
	var stack []uint32
	count := uint32(0)
	var visit func(at uint32)
	visit = func(at uint32) {
		count++
		order[at], low[at], open[at] = count, count, true
		stack = append(stack, at)
		for _, to := range x.ways(at) {
			if order[to] == 0 {
				visit(to)
			}
			if open[to] {
				low[at] = min(low[at], low[to])
			}
		}
		if low[at] != order[at] {
			return
		}
		from := len(stack) - 1
		for stack[from] != at {
			from--
		}
		component := stack[from:]
		leaves := slices.ContainsFunc(component, func(n uint32) bool {
			return slices.ContainsFunc(x.ways(n), func(to uint32) bool { return !open[to] })
		})
		if lowest := slices.Min(component); !leaves && (!found || lowest < first) {
			first, found = lowest, true
		}
		for _, n := range component {
			open[n] = false
		}
		stack = stack[:from]
	}
	for root := range uint32(len(fine)) {
		if !fine[root] && order[root] == 0 {
			visit(root)
		}
	}
	return first, found
}

// circle is the shortest way by free edges from a state back to itself; nil where there is none.
func (x *explorer[S]) circle(start uint32) []Step[S] {
	came := map[uint32]uint32{}
	for queue := []uint32{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, to := range x.ways(at) {
			if _, seen := came[to]; seen {
				continue
			}
			came[to] = at
			queue = append(queue, to)
			if to == start {
				chain := []uint32{start}
				for n := at; n != start; n = came[n] {
					chain = append(chain, n)
				}
				chain = append(chain, start)
				slices.Reverse(chain)
				return x.steps(chain, func(e Edge[S], _ bool) bool { return e.Free })
			}
		}
	}
	return nil
}
