package model

// A stuck state is one from which no settled state can be reached by free edges: without another
// fault, and without anybody's help. Whatever follows is stuck as well. The story that shows most
// leads to where it ends: the states that free edges never leave, be it one state where nothing
// moves any more or a circle.

// stuck looks for such an end and tells the story of the first one.
func (x *explorer[S]) stuck() {
	n := x.states.size()
	x.starts = append(x.starts, uint64(len(x.free)))
	ends := x.reachSettled()
	end, found := firstEnd(n, ends, func(at uint32) []uint32 { return x.free[x.starts[at]:x.starts[at+1]] })
	if !found {
		return
	}
	x.result.Stuck = true
	x.result.Path = x.path(end)
	x.result.Round = 0
	if circle := x.circle(end); len(circle) > 0 {
		x.result.Round = len(x.result.Path) + 1
		x.result.Path = append(x.result.Path, circle...)
	}
}

// reachSettled walks free edges backwards from the settled states.
func (x *explorer[S]) reachSettled() []bool {
	n := x.states.size()
	into := make([]uint64, n+1)
	for _, to := range x.free {
		into[to+1]++
	}
	for i := range n {
		into[i+1] += into[i]
	}
	back := make([]uint32, len(x.free))
	fill := append([]uint64(nil), into[:n]...)
	for from := range n {
		for _, to := range x.free[x.starts[from]:x.starts[from+1]] {
			back[fill[to]] = uint32(from)
			fill[to]++
		}
	}
	ends := make([]bool, n)
	var queue []uint32
	for i := range n {
		if x.m.Settled(*x.states.at(i)) {
			ends[i] = true
			queue = append(queue, uint32(i))
		}
	}
	for len(queue) > 0 {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, from := range back[into[at]:into[at+1]] {
			if !ends[from] {
				ends[from] = true
				queue = append(queue, from)
			}
		}
	}
	return ends
}

// firstEnd is the lowest number in a strongly connected component that no edge leaves, among the
// nodes that are not fine: Tarjan's algorithm, without recursion.
func firstEnd(n int, fine []bool, edges func(uint32) []uint32) (uint32, bool) {
	order := make([]uint32, n) // 0: not seen
	low := make([]uint32, n)
	on := make([]bool, n)
	leaves := make([]bool, n) // an edge leads to a component that was closed before
	var stack []uint32
	type frame struct {
		at   uint32
		next int
	}
	var calls []frame
	count := uint32(0)
	best, found := uint32(0), false
	for root := range n {
		if fine[root] || order[root] != 0 {
			continue
		}
		calls = append(calls, frame{at: uint32(root)})
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			at := f.at
			if order[at] == 0 {
				count++
				order[at], low[at], on[at] = count, count, true
				stack = append(stack, at)
			}
			if out := edges(at); f.next < len(out) {
				to := out[f.next]
				f.next++
				switch {
				case order[to] == 0:
					calls = append(calls, frame{at: to})
				case on[to]:
					low[at] = min(low[at], order[to])
				default:
					leaves[at] = true
				}
				continue
			}
			calls = calls[:len(calls)-1]
			closed := low[at] == order[at]
			if len(calls) > 0 {
				up := calls[len(calls)-1].at
				low[up] = min(low[up], low[at])
				leaves[up] = leaves[up] || closed || leaves[at]
			}
			if !closed {
				continue
			}
			first, bottom := at, !leaves[at]
			for {
				top := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				on[top] = false
				first = min(first, top)
				if top == at {
					break
				}
			}
			if bottom && (!found || first < best) {
				best, found = first, true
			}
		}
	}
	return best, found
}

// circle is the shortest way by free edges from a state back to itself; nil where there is none.
func (x *explorer[S]) circle(start uint32) []Step[S] {
	came := map[uint32]uint32{}
	queue := []uint32{start}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, to := range x.free[x.starts[at]:x.starts[at+1]] {
			if to == start {
				chain := []uint32{start}
				for n := at; n != start; n = came[n] {
					chain = append(chain, n)
				}
				chain = append(chain, start)
				return x.steps(chain)
			}
			if _, seen := came[to]; !seen {
				came[to] = at
				queue = append(queue, to)
			}
		}
	}
	return nil
}

// steps turns a chain of states, last first, into steps with their labels.
func (x *explorer[S]) steps(chain []uint32) []Step[S] {
	var out []Step[S]
	for i := len(chain) - 1; i > 0; i-- {
		from, to := *x.states.at(int(chain[i])), *x.states.at(int(chain[i-1]))
		step := Step[S]{From: from, To: to}
		for _, e := range x.m.Next(from, nil) {
			if e.Free && x.m.Canon(e.To) == to {
				step.Label = e.Label
				break
			}
		}
		out = append(out, step)
	}
	return out
}
