// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"fmt"
	"strings"

	"github.com/lullhq/lull/event"
)

// Placeholder is a part of [Settings].Index. The name of the collection replaces the placeholder.
const Placeholder = "{collection}"

// Names converts the name of a collection into the name of its index, and back.
type Names struct {
	prefix, suffix string
	only           event.Collection // the collection of an index name without placeholder
}

// NewNames reads the pattern of [Settings].Index. A pattern without [Placeholder] is the name of
// one index, and collections must then contain exactly one collection.
func NewNames(pattern string, collections []event.Collection) (Names, error) {
	prefix, suffix, found := strings.Cut(pattern, Placeholder)
	if strings.Contains(suffix, Placeholder) {
		return Names{}, fmt.Errorf("index %q: it contains %s twice: keep one", pattern, Placeholder)
	}
	if found {
		return Names{prefix: prefix, suffix: suffix}, nil
	}
	if len(collections) != 1 {
		return Names{}, fmt.Errorf("index %q is one index for %d collections: put %s into its name",
			pattern, len(collections), Placeholder)
	}
	return OneName(pattern, collections[0]), nil
}

// OneName returns the Names for a sink with one index, which is for one collection.
func OneName(index string, c event.Collection) Names { return Names{prefix: index, only: c} }

// Index returns the name of a collection's index, or false if the sink has no index for the
// collection.
func (n Names) Index(c event.Collection) (string, bool) {
	if n.only != "" {
		return n.prefix, c == n.only
	}
	return n.prefix + string(c) + n.suffix, true
}

// Collection returns the collection of an index, or false if the name does not fit the pattern.
func (n Names) Collection(index string) (event.Collection, bool) {
	if n.only != "" {
		return n.only, index == n.prefix
	}
	rest, ok := strings.CutPrefix(index, n.prefix)
	if !ok {
		return "", false
	}
	rest, ok = strings.CutSuffix(rest, n.suffix)
	c := event.Collection(rest)
	return c, ok && c.Validate() == nil
}

// Wildcard returns a pattern that matches the indices of all collections, and may match other
// indices. The pattern has * in the place of the collection.
func (n Names) Wildcard() string {
	if n.only != "" {
		return n.prefix
	}
	return n.prefix + "*" + n.suffix
}

// Distinct reports whether the wildcard excludes some indices, which "*" does not.
func (n Names) Distinct() bool { return n.prefix != "" || n.suffix != "" }
