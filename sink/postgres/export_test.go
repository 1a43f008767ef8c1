// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"testing"
	"time"
)

// Run runs statements on a connection of the sink, and returns the rows of the last statement as
// texts.
func (s *Sink) Run(t *testing.T, statements ...string) (rows [][]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	for _, statement := range statements {
		found, err := s.query(ctx, statement)
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		rows = nil
		for _, row := range found {
			texts := make([]string, len(row))
			for i, v := range row {
				texts[i] = string(v)
			}
			rows = append(rows, texts)
		}
	}
	return rows
}
