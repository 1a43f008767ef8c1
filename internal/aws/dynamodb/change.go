package dynamodb

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/shard"
)

// change builds the update of an item that is no document's row. Zero values take their attribute
// away, so that storing an item again leaves nothing of the old one behind.
type change struct {
	sets, removes, adds []string
	names               map[string]string
	values              map[string]types.AttributeValue
	condition           string
}

func newChange() *change {
	return &change{names: map[string]string{}, values: map[string]types.AttributeValue{}}
}

func (c *change) name(attr string) string {
	c.names["#"+attr] = attr
	return "#" + attr
}

func (c *change) value(v types.AttributeValue) string {
	name := ":v" + strconv.Itoa(len(c.values))
	c.values[name] = v
	return name
}

func (c *change) set(attr string, v types.AttributeValue, zero bool) {
	if zero {
		c.removes = append(c.removes, c.name(attr))
		return
	}
	c.sets = append(c.sets, c.name(attr)+" = "+c.value(v))
}

func (c *change) text(attr, s string) { c.set(attr, &types.AttributeValueMemberS{Value: s}, s == "") }

func (c *change) bytes(attr, s string) {
	c.set(attr, &types.AttributeValueMemberB{Value: []byte(s)}, s == "")
}

func (c *change) number(attr string, n int64) { c.set(attr, number(n), n == 0) }

func (c *change) time(attr string, t time.Time) { c.number(attr, int64(shard.MicrosOf(t))) }

// first sets the attribute unless it is there.
func (c *change) first(attr, s string) {
	if s != "" {
		n := c.name(attr)
		c.sets = append(c.sets, n+" = if_not_exists("+n+", "+c.value(&types.AttributeValueMemberS{Value: s})+")")
	}
}

func (c *change) add(attr string, n int64) {
	c.adds = append(c.adds, c.name(attr)+" "+c.value(number(n)))
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func (c *change) expression() string {
	var parts []string
	for _, p := range []struct {
		verb string
		list []string
	}{{"SET ", c.sets}, {"REMOVE ", c.removes}, {"ADD ", c.adds}} {
		if len(p.list) > 0 {
			parts = append(parts, p.verb+strings.Join(p.list, ", "))
		}
	}
	return strings.Join(parts, " ")
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
