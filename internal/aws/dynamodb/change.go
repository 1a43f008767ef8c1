// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/shard"
)

// set and the functions below return actions of an update, for items that are not rows of
// documents. A zero value removes the attribute, so that a stored item keeps no attribute of an
// older one. Package shard renders the actions, as it does for rows.
func set(attr string, v shard.Value) shard.Action {
	if v.Text == "" && v.Num == 0 {
		return shard.Action{Verb: shard.Remove, Attr: shard.Attr(attr)}
	}
	return shard.Action{Verb: shard.Set, Attr: shard.Attr(attr), Val: v}
}

func setText(attr, s string) shard.Action {
	return set(attr, shard.Value{Kind: shard.KindString, Text: s})
}

func setBytes(attr, s string) shard.Action {
	return set(attr, shard.Value{Kind: shard.KindBinary, Text: s})
}

func setNumber(attr string, n int64) shard.Action {
	return set(attr, shard.Value{Kind: shard.KindNumber, Num: n})
}

func setTime(attr string, t time.Time) shard.Action { return setNumber(attr, int64(shard.MicrosOf(t))) }

func count(attr string) shard.Action {
	return shard.Action{Verb: shard.Add, Attr: shard.Attr(attr), Val: shard.Value{Kind: shard.KindNumber, Num: 1}}
}

// fields has methods that read the attributes of an item. If an attribute is absent or has another
// type, they return the zero value.
type fields item

func (f fields) text(attr string) string { return textOf(f[attr]) }

func (f fields) bytes(attr string) string {
	if b, ok := f[attr].(*types.AttributeValueMemberB); ok {
		return string(b.Value)
	}
	return ""
}

func (f fields) number(attr string) int64 {
	if v, err := value(f[attr]); err == nil {
		return v.Num
	}
	return 0
}

func (f fields) time(attr string) time.Time { return shard.Micros(f.number(attr)).Time() }
