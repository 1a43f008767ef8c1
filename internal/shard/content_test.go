// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"fmt"
	"testing"

	"github.com/lullhq/lull/internal/shard"
)

func TestContentSaysWhichGenerationItIsFrom(t *testing.T) {
	t.Parallel()
	c := shard.ContentOf("here", "k", []byte("{}"))
	if len(c) != 8 || !c.From("here") || c.From("there") || shard.Content("").From("here") {
		t.Errorf("%x: %t, %t", c, c.From("here"), c.From("there"))
	}
	taken := 0
	for i := range 100_000 {
		if c.From(fmt.Sprint("there-", i)) {
			taken++
		}
	}
	if taken > 60 { // 24 are expected
		t.Errorf("%d of 100,000 other generations are mistaken for this one, want about 24", taken)
	}
}

func TestContentDiffersWithEachOfItsParts(t *testing.T) {
	t.Parallel()
	seen := map[shard.Content]string{}
	for _, parts := range [][3]string{
		{"here", "k", "{}"},
		{"there", "k", "{}"},
		{"here", "l", "{}"},
		{"here", "k", `{"a":1}`},
		{"here", "", "k{}"},
		{"herek", "", "{}"},
		{"", "herek", "{}"},
	} {
		c := shard.ContentOf(parts[0], shard.OrderKey(parts[1]), []byte(parts[2]))
		if other, taken := seen[c]; taken {
			t.Errorf("%q and %s are %x", parts, other, c)
		}
		seen[c] = fmt.Sprintf("%q", parts)
	}
}
