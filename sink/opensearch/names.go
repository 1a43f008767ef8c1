package opensearch

import (
	"fmt"
	"strings"

	"github.com/lullhq/lull/internal/shard"
)

// placeholder stands for the collection in Options.Index.
const placeholder = "{collection}"

// names turns collections into index names and back.
type names struct {
	prefix, suffix string
	only           shard.Collection // of an index without placeholder
}

func newNames(pattern string, collections []shard.Collection) (names, error) {
	prefix, suffix, found := strings.Cut(pattern, placeholder)
	if strings.Contains(suffix, placeholder) {
		return names{}, fmt.Errorf("index %q: %s stands there twice", pattern, placeholder)
	}
	if found {
		return names{prefix: prefix, suffix: suffix}, nil
	}
	if len(collections) != 1 {
		return names{}, fmt.Errorf("index %q is one index, and %d collections are written there: put %s into the name",
			pattern, len(collections), placeholder)
	}
	return names{prefix: pattern, only: collections[0]}, nil
}

// index is the name of a collection's index; false where the sink has none for it.
func (n names) index(c shard.Collection) (string, bool) {
	if n.only != "" {
		return n.prefix, c == n.only
	}
	return n.prefix + string(c) + n.suffix, true
}

// collection is the collection of an index or alias; false where the name does not fit.
func (n names) collection(index string) (shard.Collection, bool) {
	if n.only != "" {
		return n.only, index == n.prefix
	}
	rest, ok := strings.CutPrefix(index, n.prefix)
	if !ok {
		return "", false
	}
	rest, ok = strings.CutSuffix(rest, n.suffix)
	c := shard.Collection(rest)
	return c, ok && c.Validate() == nil
}

// wildcard matches every index that may be ours, and others.
func (n names) wildcard() string {
	if n.only != "" {
		return n.prefix
	}
	return n.prefix + "*" + n.suffix
}

// distinct reports whether the wildcard says more than "every index".
func (n names) distinct() bool { return n.prefix != "" || n.suffix != "" }
