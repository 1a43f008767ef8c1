// SPDX-License-Identifier: Apache-2.0

package vertex

import (
	"strings"
	"testing"
)

// An id that is a valid name is not changed. Two different ids never become the same name.
func TestIDsBecomeNamesAndNoTwoTheSame(t *testing.T) {
	t.Parallel()
	digest := documentID("a b")
	seen := map[string]string{}
	for id, same := range map[string]bool{
		"vienna": true, "5b4bcb8e-7c1e-4d8a-9d7c-0a4d2ab3a001": true, "a": true, "0": true, strings.Repeat("x", 63): true,
		"Vienna": false, "a_b": false, "a b": false, "-a": false, "a-": false, "": false, "a/b": false, "ä": false,
		strings.Repeat("x", 64): false, digest: false, "lull-a": false,
	} {
		got := documentID(id)
		if (got == id) != same || !plainID.MatchString(got) {
			t.Errorf("%q becomes %q, want the same %t", id, got, same)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q both become %q", id, other, got)
		}
		seen[got] = id
	}
}

// A document that another program wrote or changed must never count as a document that lull wrote.
func TestDocumentsThatLullDidNotWriteSo(t *testing.T) {
	t.Parallel()
	for text, ours := range map[string]bool{
		`{"title":"x"}`:          false,
		`{}`:                     false,
		`{"_lull":{}}`:           true,
		`{"_lull":7,"title":""}`: true,
		`{"_lull":{"version":"1","order_key":"","fence":"7","indexed_at":"2026-11-22T00:00:00Z"}}`:          true,
		`{"_lull":{"id":"a","version":"1","order_key":"","fence":"x","indexed_at":"2026-11-22T00:00:00Z"}}`: true,
		`{"_lull":{"id":"a","version":"1","order_key":"","indexed_at":"2026-11-22T00:00:00Z"}}`:             true,
	} {
		stored, is, err := opened("content", body{ID: "a", Data: &text})
		if is != ours || (err != nil) != ours || stored.Doc != "content#a" || string(stored.Document) != text || stored.Fence != 0 {
			t.Errorf("%s: got %+v, ours %t, %v", text, stored, is, err)
		}
	}
	text := `["_lull"]`
	if _, is, err := opened("content", body{Name: "projects/1/documents/a", Data: &text}); is || err == nil {
		t.Errorf("a list: got %t, %v", is, err)
	}
}
