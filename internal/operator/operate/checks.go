package operate

import (
	"cmp"
	"math"

	"github.com/lullhq/lull/internal/shard"
)

// What several questions may say, and what is wrong with it: each error is ErrInput.

// want refuses a question that is not as the text says.
func want(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return inputf(format, args...)
}

// named refuses a change that the audit could put down to nobody.
func named(by string) error { return want(by != "", "by: name who asks, for the audit") }

// rated refuses what is not a number of documents or dead letters a second.
func rated(rate float64, of string) error {
	return want(rate >= 0 && !math.IsInf(rate, 0), "rate %g: want %s a second, or 0 for no limit", rate, of)
}

// limited is how many of something a question wants: usual where it does not say.
func limited(n, usual, most int) (int, error) {
	n = cmp.Or(n, usual)
	return n, want(n >= 1 && n <= most, "limit %d: want 1 to %d", n, most)
}

// whole refuses what is not the key of a document.
func whole(key shard.DocID) error {
	if _, err := shard.ParseDocID(string(key)); err != nil {
		return input(err)
	}
	return nil
}

// belongs refuses what is not the name of a collection.
func belongs(c shard.Collection) error {
	if err := c.Validate(); err != nil {
		return inputf("collection: %w", err)
	}
	return nil
}

// filtered is belongs for a question that need not name a collection.
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
