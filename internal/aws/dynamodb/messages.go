// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/shard"
)

// messages stores the messages that dead letters share. Each message is one object in Bodies and
// one item, !message#<hash>. The item names the object and the dead letters that refer to the
// message. An item has room for a thousand references. If a message has more events, the dead
// letters of further events share another item and another object. If an item is full for another
// reason, each further dead letter gets a separate item and object.
//
// The item decides between concurrent callers (ADR 0024). Each reference has a random token, so
// that a caller that drops a dead letter removes only the reference that it has read. The caller
// that removes the last reference deletes the item, unless there is a new reference, and then the
// object. The name of an object is never used again: a later reference to the message creates a new
// item and a new object.
type messages struct {
	table  calls
	bodies Bodies
}

const (
	message kind = "message"

	attrObject shard.Attr = "object" // the name of the object
	attrStored shard.Attr = "stored" // 1 after the object was stored
	attrRefers shard.Attr = "refers" // how often a reference was added
	refPrefix             = "ref_"   // the attribute ref_ + the id of a dead letter contains the token of its reference
)

// perItem is how many events of a message share an item, and how many references may be added to an
// item. A reference takes about 70 bytes, and an item has at most 400 KB.
const perItem = 1000

// loneID returns the id of a message item that only one dead letter uses.
func loneID(l deadletter.Letter) string { return l.Hash + "." + l.ID }

// sharedID returns the id of the message item to which the dead letter of an event refers.
func sharedID(hash string, event int) string {
	if n := event / perItem; n > 0 {
		return hash + "." + strconv.Itoa(n)
	}
	return hash
}

// ref is a dead letter's reference to its message. The name of the object begins with the id of the
// item.
type ref struct {
	hash, object, token string
}

func refOf(f fields) ref { return ref{f.text("hash"), f.text("object"), f.text("ref")} }

func (r ref) item() shard.DocID {
	share, _, _ := strings.Cut(r.object, "-")
	return message.doc(share)
}

// refAttr returns the name of the attribute for a reference. The id of a dead letter consists of
// letters and digits, so it may be part of the name.
func refAttr(id string) shard.Attr { return shard.Attr(refPrefix + id) }

func equal(attr shard.Attr, text string) shard.Clause {
	return shard.Clause{{Attr: attr, Op: shard.Equal, Val: shard.Value{Kind: shard.KindString, Text: text}}}
}

// keep adds a reference to a message, and stores the message if it is not stored yet.
func (m messages) keep(ctx context.Context, doing string, l deadletter.Letter) (ref, error) {
	r := ref{hash: l.Hash, token: rand.Text()}
	r.object = sharedID(l.Hash, l.Event) + "-" + r.token
	old, err := m.refer(ctx, doing, l, r)
	if _, full := refusal(err); full {
		r.object = loneID(l) + "-" + r.token
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

// refer adds a reference to its item and returns the old item. If the item is full, the write is
// refused.
func (m messages) refer(ctx context.Context, doing string, l deadletter.Letter, r ref) (item, error) {
	return m.table.change(ctx, doing, shard.Write{Doc: r.item(), Cond: []shard.Clause{{
		{Attr: attrRefers, Op: shard.Absent},
		{Attr: attrRefers, Op: shard.Less, Val: shard.Value{Kind: shard.KindNumber, Num: perItem}},
		{Attr: refAttr(l.ID), Op: shard.Exists}, // the item already has a reference of this dead letter
	}}, Update: []shard.Action{
		{
			Verb: shard.SetIfAbsent, Attr: attrObject, Val: shard.Value{Kind: shard.KindString, Text: r.object},
		},
		setText(string(refAttr(l.ID)), r.token), count(string(attrRefers)),
	}})
}

// current returns the current reference of a dead letter, or false if there is none. If another
// caller parks the same dead letter at the same time, the token differs from the token of r. The
// caller then uses the returned token.
func (m messages) current(ctx context.Context, id string, r ref) (ref, bool, error) {
	it, err := m.table.get(ctx, r.item())
	f := fields(it)
	there := f.text(string(attrObject)) == r.object
	r.token = f.text(string(refAttr(id)))
	return r, there && r.token != "", err
}

// release removes the reference of a dead letter. With the last reference, release also removes the
// message. If a call of release was interrupted, another call completes the removal.
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
		// If the item names another object or does not exist, no dead letter refers to this object
		// any more.
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
		// A refusal means that another caller added a reference or deleted the item.
	}
	return m.bodies.Delete(ctx, r.object)
}

// ids returns the ids of the dead letters that refer to a message, except dead letters with a
// separate item (loneID).
func (m messages) ids(ctx context.Context, hash string) ([]string, error) {
	var ids []string
	for n := 0; n < event.MaxEvents; n += perItem {
		it, err := m.table.get(ctx, message.doc(sharedID(hash, n)))
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

// errRefused is DynamoDB's error for a condition that is not met.
var errRefused error = &types.ConditionalCheckFailedException{}

// refusal returns DynamoDB's error for a condition that is not met, or false for any other error.
func refusal(err error) (*types.ConditionalCheckFailedException, bool) {
	return errors.AsType[*types.ConditionalCheckFailedException](err)
}
