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
			t.Errorf("%U: got %q, %v, want an error that says where", r, doc, err)
		}
		if strings.Contains(shardError(id), string(r)) {
			t.Errorf("%U: the error repeats it", r)
		}
		// a row of before can be asked for
		if doc, err := shard.ParseDocID("content#" + id); err != nil || doc.ID() != id {
			t.Errorf("%U: parsed %q, %v, want it", r, doc, err)
		}
	}
	for _, id := range []string{" ", "~", "\u00a0", "é", "東京", "\u200d", "\u2027", "\u202f", "\u2065", "\ufffd"} {
		if _, err := shard.NewDocID("content", id); err != nil {
			t.Errorf("%q: got %v, want it allowed", id, err)
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
