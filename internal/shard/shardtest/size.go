package shardtest

import (
	"strconv"
	"strings"

	"github.com/lullhq/lull/internal/shard"
)

// ItemSize is the size of a row's item by DynamoDB's published rules ("Item sizes and formats" in
// its developer guide): names and texts in UTF-8, binary as it is, numbers a byte for every two
// significant digits, one more, and one for a sign. An absent row has none.
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
		if v.Kind == shard.KindNumber {
			n += NumberSize(v.Num)
		} else {
			n += len(v.Text)
		}
	}
	return n
}

// NumberSize is the size of a number in an item.
func NumberSize(v int64) int {
	n := 1
	if v < 0 {
		n++
	}
	digits := strings.Trim(strconv.FormatInt(v, 10), "-0") // zeros at either end are not stored
	return n + (len(digits)+1)/2
}
