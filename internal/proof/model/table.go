// SPDX-License-Identifier: Apache-2.0

package model

// list is a slice that grows without moving its elements. Growing a normal slice of gigabytes needs
// twice its size during the copy.
type list[T any] struct {
	chunks [][]T
}

const chunkSize = 1 << 14

func (l *list[T]) size() int {
	if len(l.chunks) == 0 {
		return 0
	}
	last := len(l.chunks) - 1
	return last*chunkSize + len(l.chunks[last])
}

func (l *list[T]) add(v T) {
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last]) == chunkSize {
		l.chunks = append(l.chunks, make([]T, 0, chunkSize))
		last++
	}
	l.chunks[last] = append(l.chunks[last], v)
}

func (l *list[T]) at(n int) *T { return &l.chunks[n/chunkSize][n%chunkSize] }
