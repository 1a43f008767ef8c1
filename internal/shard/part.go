// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"bytes"
	"crypto/sha256"
	"strconv"
)

// MaxParts is the most parts that documents may be spread over.
const MaxParts = 100

// Part returns the part of a document, from 1 to parts; 1 if parts is 1 or less. Senders in other
// languages compute the same number, so the result never changes.
//
// The part is the number n whose SHA-256 of "n:collection#id" is the greatest. So if parts grows, a
// document either keeps its part or moves to one of the new parts.
func Part(doc DocID, parts int) int {
	part, greatest := 1, [sha256.Size]byte{}
	if parts <= 1 {
		return part
	}
	doc = doc.Plain()
	text := make([]byte, 0, len("100:")+len(doc))
	for n := 1; n <= parts; n++ {
		text = append(append(strconv.AppendInt(text[:0], int64(n), 10), ':'), doc...)
		if digest := sha256.Sum256(text); bytes.Compare(digest[:], greatest[:]) > 0 {
			part, greatest = n, digest
		}
	}
	return part
}
