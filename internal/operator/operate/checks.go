// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"math"

	"github.com/lullhq/lull/internal/shard"
)

// These functions check parameters that several operations have. Each error is ErrInput.

// want returns an error with the text if ok is false.
func want(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return inputf(format, args...)
}

// named refuses a change without the name of the operator, which the audit needs.
func named(by string) error { return want(by != "", "by: name the operator, for the audit") }

// rated refuses a rate that is negative or infinite.
func rated(rate float64, of string) error {
	return want(rate >= 0 && !math.IsInf(rate, 0), "rate %g: want %s a second, or 0 for no limit", rate, of)
}

// limited returns n, or usual if n is 0, and refuses a number outside 1 to most.
func limited(n, usual, most int) (int, error) {
	n = cmp.Or(n, usual)
	return n, want(n >= 1 && n <= most, "limit %d: want 1 to %d", n, most)
}

// whole refuses a text that is not the key of a document of this stack.
func (o *layout) whole(key shard.DocID) error {
	if _, err := shard.ParseDocID(string(key)); err != nil {
		return input(err)
	}
	return want(o.Config.Ours(key), "key %s: use the settings of the other part", o.Config.NotOurs(key))
}

// belongs refuses a text that is not the name of a collection.
func belongs(c shard.Collection) error {
	if err := c.Validate(); err != nil {
		return inputf("collection: %w", err)
	}
	return nil
}

// filtered refuses a text that is neither empty nor the name of a collection.
func filtered(c shard.Collection) error {
	if c == "" {
		return nil
	}
	return belongs(c)
}

// runOf reads the resync run of an order, a ULID.
func runOf(text string) (shard.Run, error) {
	run, err := shard.ParseRun(text)
	if err != nil {
		return run, inputf("run: %w", err)
	}
	return run, nil
}
