package sink

import (
	"fmt"
	"strings"

	"github.com/lullhq/lull/event"
)

// Placeholder is replaced by the collection's name in [Settings].Index.
const Placeholder = "{collection}"

// Names turns collections into the names of their indices and back.
type Names struct {
	prefix, suffix string
	only           event.Collection // of an index without placeholder
}

// NewNames reads [Settings].Index. Without [Placeholder] the pattern is one index, and collections
// must be the one collection that is written there.
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

// OneName are the names where one collection has an index and no other has any.
func OneName(index string, c event.Collection) Names { return Names{prefix: index, only: c} }

// Index is the name of a collection's index; false where the sink has none for it.
func (n Names) Index(c event.Collection) (string, bool) {
	if n.only != "" {
		return n.prefix, c == n.only
	}
	return n.prefix + string(c) + n.suffix, true
}

// Collection is the collection of an index; false where the name does not fit.
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

// Wildcard is a pattern that matches all these indices, and may match others. * is in the place of
// the collection.
func (n Names) Wildcard() string {
	if n.only != "" {
		return n.prefix
	}
	return n.prefix + "*" + n.suffix
}

// Distinct reports whether the wildcard is narrower than "every index".
func (n Names) Distinct() bool { return n.prefix != "" || n.suffix != "" }
