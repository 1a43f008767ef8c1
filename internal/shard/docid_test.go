// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/shard"
)

func TestIDsHoldNoControlCharacters(t *testing.T) {
	t.Parallel()
	for _, r := range []rune{
		0, '\t', '\n', '\r', 0x1b, 0x1f, 0x7f, 0x80, 0x9b, 0x9f, 0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e,
		0x2066, 0x2069,
	} {
		id := "a" + string(r) + "b"
		if doc, err := shard.NewDocID("content", id); err == nil || !strings.Contains(err.Error(), "at byte 1") {
			t.Errorf("%U: got %q, %v, want an error with the position", r, doc, err)
		}
		if strings.Contains(shardError(id), string(r)) {
			t.Errorf("%U: the error contains the character", r)
		}
		// Rows with such ids, from builds that accepted them, can still be read.
		if doc, err := shard.ParseDocID("content#" + id); err != nil || doc.ID() != id {
			t.Errorf("%U: parsed %q, %v, want the same id", r, doc, err)
		}
	}
	for _, id := range []string{" ", "~", "\u00a0", "é", "東京", "\u200d", "\u2027", "\u202f", "\u2065", "\ufffd"} {
		if _, err := shard.NewDocID("content", id); err != nil {
			t.Errorf("%q: got %v, want the id allowed", id, err)
		}
	}
	if _, err := shard.NewDocID("content", "a\xff"); err == nil {
		t.Error("not UTF-8: got no error")
	}
}

func shardError(id string) string {
	_, err := shard.NewDocID("content", id)
	return err.Error()
}

func TestAKeySaysItsCollectionItsSinkAndItsID(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		doc                           shard.DocID
		collection, sink, id, plainly string
	}{
		{"content#a", "content", "", "a", "content#a"},
		{"content@vectors#a", "content", "vectors", "a", "content#a"},
		{"content@vectors#a@b#c", "content", "vectors", "a@b#c", "content#a@b#c"},
		{"content#a@b#c", "content", "", "a@b#c", "content#a@b#c"},
	} {
		doc, err := shard.ParseDocID(string(tt.doc))
		if err != nil || doc != tt.doc || string(doc.Collection()) != tt.collection || doc.Sink() != tt.sink ||
			doc.ID() != tt.id || string(doc.Plain()) != tt.plainly ||
			doc.Plain().In(tt.sink) != doc || !doc.IsDocument() {
			t.Errorf("%s: %q, %v: collection %s, sink %s, id %s, without its sink %s", tt.doc, doc, err, doc.Collection(),
				doc.Sink(), doc.ID(), doc.Plain())
		}
	}
	for _, bad := range []string{"content@#a", "content@Big#a", "content@a@b#a", "@a#a", "content@a"} {
		if doc, err := shard.ParseDocID(bad); err == nil {
			t.Errorf("%s: got %s, want an error", bad, doc)
		}
	}
	if row := shard.HealthRow("search"); row.In("vectors") != row || row.Plain() != row {
		t.Errorf("the key of one of lull's own rows got a sink: %s", row.In("vectors"))
	}
}
