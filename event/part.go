// SPDX-License-Identifier: Apache-2.0

package event

import "github.com/lullhq/lull/internal/shard"

// MaxParts is the most parts that documents may be spread over.
const MaxParts = shard.MaxParts

// Part returns the part of a document, from 1 to parts, if documents are spread over that many
// stacks (setting parts). It is 1 if parts is 1 or less.
//
// Senders in other languages must compute the same number, so the result never changes. For each
// number n from 1 to parts, take the SHA-256 of the text n:collection#id in UTF-8, such as
// "2:content#7". The part is the n whose digest is the greatest, compared byte by byte. The text
// contains n in decimal digits, and the id as the event has it. docs/scale.md has test vectors.
//
// If parts grows, a document either keeps its part or moves to one of the new parts.
func Part(collection Collection, id string, parts int) int {
	return shard.Part(DocID(string(collection)+"#"+id), parts)
}
