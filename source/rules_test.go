// SPDX-License-Identifier: Apache-2.0

package source

import "testing"

func TestAPlaceEndsWithAFolder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		prefix, key string
		want        bool
	}{
		{"", "ab/x", true},
		{"a", "a/x", true},
		{"a", "a", false},
		{"a", "ab/x", false},
		{"a", "ab", false},
		{"a/", "a/x", true},
		{"a/", "ab/x", false},
		{"a/b", "a/bc", false},
		{"a/b", "a/b/c", true},
		{"a", "x/a/", false},
	} {
		r := Rules{Name: "native", places: []Place{{Bucket: "b", Prefix: tt.prefix}}}
		if got := r.Allowed("dataref", "b", tt.key) == nil; got != tt.want {
			t.Errorf("prefix %q allows key %q: %t, want %t", tt.prefix, tt.key, got, tt.want)
		}
	}
}
