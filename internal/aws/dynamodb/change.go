package dynamodb

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/shard"
)

// change is the update of an item that is not a document's row. Zero values take their attribute
// away, so that storing an item again leaves nothing of the old one behind. Package shard renders
// it, as it renders the writes of rows.
type change []shard.Action

func (c *change) do(verb shard.Verb, attr string, v shard.Value) {
	*c = append(*c, shard.Action{Verb: verb, Attr: shard.Attr(attr), Val: v})
}

func (c *change) set(attr string, v shard.Value) {
	verb := shard.Set
	if v.Text == "" && v.Num == 0 {
		verb = shard.Remove
	}
	c.do(verb, attr, v)
}

func (c *change) text(attr, s string) { c.set(attr, shard.Value{Kind: shard.KindString, Text: s}) }

func (c *change) bytes(attr, s string) { c.set(attr, shard.Value{Kind: shard.KindBinary, Text: s}) }

func (c *change) number(attr string, n int64) {
	c.set(attr, shard.Value{Kind: shard.KindNumber, Num: n})
}
func (c *change) time(attr string, t time.Time) { c.number(attr, int64(shard.MicrosOf(t))) }
func (c *change) count(attr string) {
	c.do(shard.Add, attr, shard.Value{Kind: shard.KindNumber, Num: 1})
}

// first sets the attribute unless it is there.
func (c *change) first(attr, s string) {
	if s != "" {
		c.do(shard.SetIfAbsent, attr, shard.Value{Kind: shard.KindString, Text: s})
	}
}

// fields reads an item that change wrote. An attribute that is absent or of another type is zero.
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
