package memory

// timeline is a heap of messages by when they become visible.
type timeline struct{ heap []*message }

func (t *timeline) first() *message {
	if len(t.heap) == 0 {
		return nil
	}
	return t.heap[0]
}

func (t *timeline) add(m *message) {
	m.slot = len(t.heap)
	t.heap = append(t.heap, m)
	t.up(m.slot)
}

func (t *timeline) take(m *message) {
	last := len(t.heap) - 1
	i := m.slot
	t.heap[i] = t.heap[last]
	t.heap[i].slot = i
	t.heap[last] = nil
	t.heap = t.heap[:last]
	if i < last {
		t.moved(t.heap[i])
	}
}

// moved restores the order after m's time changed.
func (t *timeline) moved(m *message) {
	t.up(m.slot)
	t.down(m.slot)
}

// before orders by time, then by age, so that one history gives one order.
func (t *timeline) before(i, j int) bool {
	a, b := t.heap[i], t.heap[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (t *timeline) swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.heap[i].slot, t.heap[j].slot = i, j
}

func (t *timeline) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !t.before(i, parent) {
			return
		}
		t.swap(i, parent)
		i = parent
	}
}

func (t *timeline) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(t.heap); child++ {
			if t.before(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		t.swap(i, least)
		i = least
	}
}

// fifo is the visible messages, the longest visible first. Messages that were deleted while visible
// stay in it as gone until they reach the front.
type fifo struct {
	list []*message
	head int
	gone int
}

func (f *fifo) len() int { return len(f.list) - f.head - f.gone }

func (f *fifo) push(m *message) { f.list = append(f.list, m) }

// first is the message at the front, nil for none.
func (f *fifo) first() *message {
	for f.head < len(f.list) {
		if m := f.list[f.head]; m.state == visible {
			return m
		}
		f.gone--
		f.drop()
	}
	f.list, f.head = f.list[:0], 0
	return nil
}

// drop takes the front off, and gives memory back once half of the list is empty.
func (f *fifo) drop() {
	f.list[f.head] = nil
	f.head++
	if f.head >= 1024 && 2*f.head >= len(f.list) {
		n := copy(f.list, f.list[f.head:])
		clear(f.list[n:])
		f.list, f.head = f.list[:n], 0
	}
}
