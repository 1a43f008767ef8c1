// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/config/tree"
)

// The YAML parser recurses into lists and along the keys of a mapping. It also stores a path for
// each level, so a hostile text could use much memory.
func TestHostileTextIsRefusedBeforeItIsParsed(t *testing.T) { // not parallel: it measures memory
	const most = 256 << 20
	for text, want := range map[string]error{
		"[": tree.ErrTooDeep, "{": tree.ErrTooDeep, "{a: ": tree.ErrTooDeep, "- ": tree.ErrTooDeep, "? ": tree.ErrTooDeep,
		"? [": tree.ErrTooDeep, "- {a: ": tree.ErrTooDeep, "[&a ": errIndirect, "[*a, ": errIndirect, "!!str ": errIndirect,
		"a: b\n": errTooMany, "- a\n": errTooMany, "<<: a\n": errTooMany, "a: [b]\n": errTooMany, "- - - a\n": errTooMany,
		"---\n": errTooMany, "a: |\n  b\n": errTooMany, "]": errTooMany, ": a\n": errTooMany,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parse([]byte(strings.Repeat(text, tree.MaxBytes/len(text))))
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > most {
			t.Errorf("%q: allocates %d MB, want at most %d", text, got>>20, most>>20)
		}
		if !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", text, err, want)
		}
		runtime.ReadMemStats(&before)
		_, _ = parse([]byte(strings.Repeat(text, maxTokens/4))) // few enough tokens to be parsed
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > most {
			t.Errorf("%q, few of them: allocates %d MB, want at most %d", text, got>>20, most>>20)
		}
	}
}

func TestSettingsAsDeepAsTheyMayBeAreParsed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"lists":          strings.Repeat("[", tree.MaxDepth+1) + strings.Repeat("]", tree.MaxDepth+1),
		"groups":         strings.Repeat("{a: ", tree.MaxDepth) + "b" + strings.Repeat("}", tree.MaxDepth),
		"lists of lines": strings.Repeat("- ", tree.MaxDepth) + "a",
		"many lines":     strings.Repeat("- [a, {b: c}] # why\n", 1000),
	} {
		if _, err := parse([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
