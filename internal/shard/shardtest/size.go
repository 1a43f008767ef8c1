// SPDX-License-Identifier: Apache-2.0

package shardtest

import (
	"strconv"
	"strings"

	"github.com/lullhq/lull/internal/shard"
)

// ItemSize returns the size of a row's item in bytes, by DynamoDB's published rules ("Item sizes
// and formats" in its developer guide). Names and texts count in UTF-8, and binary values by their
// length. A number has one byte, one more for every two significant digits, and one for a minus
// sign. An absent row has size 0.
func ItemSize(r shard.Row) int {
	if !r.Exists() {
		return 0
	}
	n := len("doc") + len(r.Doc)
	for _, a := range shard.Attrs() {
		v, ok := r.Get(a)
		if !ok {
			continue
		}
		n += len(a)
		switch v.Kind {
		case shard.KindNumber:
			n += NumberSize(v.Num)
		case shard.KindKeySet:
			n += 3 + len(v.Text) // 3 for the set; the 1 for each key is in Text, as the byte with the key's length
		default:
			n += len(v.Text)
		}
	}
	return n
}

// NumberSize returns the size of a number in an item, in bytes.
func NumberSize(v int64) int {
	n := 1
	if v < 0 {
		n++
	}
	digits := strings.Trim(strconv.FormatInt(v, 10), "-0") // zeros at either end of a number are not stored
	return n + (len(digits)+1)/2
}
