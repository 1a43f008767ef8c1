package dynamodb

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/shard"
)

// messages keeps the messages that dead letters share: each in one object of Bodies, and an item
// beside it, !message#<hash>, which says in which object, and which dead letters refer to it. The
// item has room for a thousand; the dead letters of further events share another item and object.
// A body that is sent again and again may die more often than that, as ever newer versions: then
// each further dead letter has an item and an object of its own.
//
// The item is the referee (ADR 0024). Each reference has a token of its own, so that whoever drops
// a dead letter takes back the reference that it saw and no other. Who takes the last one deletes
// the item, if nobody has referred to it since, and then the object. An object's name is never used
// again: who refers to the message after that makes an item and an object of their own.
type messages struct {
	table  calls
	bodies Bodies
}

const (
	message kind = "message"

	attrObject shard.Attr = "object" // the name of the object
	attrStored shard.Attr = "stored" // 1 once the object is there
	attrRefers shard.Attr = "refers" // how often somebody has referred to it
	refPrefix             = "ref_"   // and a dead letter's id: the token of its reference
)

// perItem is how many events of a message share an item, and how many references an item takes: one
// has about 70 bytes, and an item has at most 400 KB.
const perItem = 1000

// lone is the id of the item of one dead letter alone.
func lone(l deadletter.Letter) string { return l.Hash + "." + l.ID }

// share is the id of the item that the dead letter of an event refers to.
func share(hash string, event int) string {
	if n := event / perItem; n > 0 {
		return hash + "." + strconv.Itoa(n)
	}
	return hash
}

// ref is a dead letter's reference to its message. The object is named after the item.
type ref struct {
	hash, object, token string
}

func refOf(f fields) ref { return ref{f.text("hash"), f.text("object"), f.text("ref")} }

func (r ref) item() shard.DocID {
	share, _, _ := strings.Cut(r.object, "-")
	return message.doc(share)
}

// refAttr is the attribute of a reference: the ids of dead letters are letters and digits.
func refAttr(id string) shard.Attr { return shard.Attr(refPrefix + id) }

func equal(attr shard.Attr, text string) shard.Clause {
	return shard.Clause{{Attr: attr, Op: shard.Equal, Val: shard.Value{Kind: shard.KindString, Text: text}}}
}

// keep refers to the message, and stores it where nobody has.
func (m messages) keep(ctx context.Context, doing string, l deadletter.Letter) (ref, error) {
	r := ref{hash: l.Hash, token: rand.Text()}
	r.object = share(l.Hash, l.Event) + "-" + r.token
	old, err := m.refer(ctx, doing, l, r)
	if _, full := refusal(err); full {
		r.object = lone(l) + "-" + r.token
		old, err = m.refer(ctx, doing, l, r)
	}
	if err != nil {
		return ref{}, err
	}
	if object := fields(old).text(string(attrObject)); object != "" {
		r.object = object
	}
	if fields(old).number(string(attrStored)) == 1 {
		return r, nil
	}
	if err := m.bodies.Put(ctx, r.object, l.Body, l.Attributes); err != nil {
		return ref{}, err
	}
	_, err = m.table.change(ctx, doing, shard.Write{
		Doc: r.item(), Cond: []shard.Clause{equal(attrObject, r.object)},
		Update: []shard.Action{setNumber(string(attrStored), 1)},
	})
	return r, err
}

// refer adds the reference to its item and returns the item before. It is refused where the item is
// full.
func (m messages) refer(ctx context.Context, doing string, l deadletter.Letter, r ref) (item, error) {
	return m.table.change(ctx, doing, shard.Write{Doc: r.item(), Cond: []shard.Clause{{
		{Attr: attrRefers, Op: shard.Absent},
		{Attr: attrRefers, Op: shard.Less, Val: shard.Value{Kind: shard.KindNumber, Num: perItem}},
		{Attr: refAttr(l.ID), Op: shard.Exists}, // its place is taken already
	}}, Update: []shard.Action{
		{
			Verb: shard.SetIfAbsent, Attr: attrObject, Val: shard.Value{Kind: shard.KindString, Text: r.object},
		},
		setText(string(refAttr(l.ID)), r.token), count(string(attrRefers)),
	}})
}

// standing is the dead letter's reference as it stands: with another token where somebody else
// parks the same dead letter beside the caller, who then takes that one. It is false where the
// message was let go.
func (m messages) standing(ctx context.Context, id string, r ref) (ref, bool, error) {
	it, err := m.table.get(ctx, r.item())
	f := fields(it)
	there := f.text(string(attrObject)) == r.object
	r.token = f.text(string(refAttr(id)))
	return r, there && r.token != "", err
}

// release takes a dead letter's reference back, and the message with the last one. Repeating it
// goes on where it ended.
func (m messages) release(ctx context.Context, doing, id string, r ref) error {
	it, err := m.table.change(ctx, doing, shard.Write{
		Doc: r.item(), Cond: []shard.Clause{equal(refAttr(id), r.token), equal(attrObject, r.object)},
		Update: []shard.Action{setText(string(refAttr(id)), "")},
	})
	for {
		if _, refused := refusal(err); refused {
			it, err = m.table.get(ctx, r.item())
		}
		if err != nil {
			return err
		}
		f := fields(it)
		// With another object, or without an item, nobody refers to this object any more.
		if f.text(string(attrObject)) != r.object {
			break
		}
		for name := range it {
			if strings.HasPrefix(name, refPrefix) && (name != string(refAttr(id)) || f.text(name) != r.token) {
				return nil
			}
		}
		_, err = m.table.change(ctx, doing, shard.Write{
			Doc: r.item(), Drop: true, Cond: []shard.Clause{equal(attrObject, r.object), {{
				Attr: attrRefers, Op: shard.Equal,
				Val: shard.Value{Kind: shard.KindNumber, Num: f.number(string(attrRefers))},
			}}},
		})
		if err == nil {
			break
		}
		// Refused: somebody has referred to it since, or took it away.
	}
	return m.bodies.Delete(ctx, r.object)
}

// ids are the dead letters that refer to a message, but for those that are alone with their item.
func (m messages) ids(ctx context.Context, hash string) ([]string, error) {
	var ids []string
	for n := 0; n < event.MaxEvents; n += perItem {
		it, err := m.table.get(ctx, message.doc(share(hash, n)))
		if err != nil {
			return nil, err
		}
		for name := range it {
			if id, ok := strings.CutPrefix(name, refPrefix); ok {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

// errRefused is what DynamoDB says where a condition was not met.
var errRefused error = &types.ConditionalCheckFailedException{}

// refusal is the answer of DynamoDB that says that a condition was not met.
func refusal(err error) (*types.ConditionalCheckFailedException, bool) {
	return errors.AsType[*types.ConditionalCheckFailedException](err)
}
