// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"strings"
)

// AttrLetter holds the facts of a dead letter that is sent to the dead-letter queue. Facts from
// another sender than lull do not count and are not stored. The name never changes, because the
// dead-letter queue may hold dead letters of older code for fourteen days.
const AttrLetter = "lull-letter"

// owned lists the attributes that only lull may set, in the order in which they are reported. Other
// attributes have other rules:
//
//   - [AttrSource] and [AttrGroup] are for senders.
//   - [AttrFirstSent] counts for every sender, because it can only make a message older. A copy
//     without it could overwrite a newer document.
//   - [AttrLetter] is not removed, because its message may hold an event. Only its facts need
//     [Senders.Ours].
var owned = [...]string{AttrLine, AttrPart, AttrEvent}

// Senders lists the ids that send in lull's name: the unique ids of roles, and the id of the
// account. Only this list decides whose `lull-*` attributes count (ADR 0057). Nil trusts every
// message, because in one process no other program can send.
type Senders []string

// Ours reports whether one of the senders sent a message. sender is the [Message.Sender] of that
// message.
func (s Senders) Ours(sender string) bool {
	id, _, session := strings.Cut(sender, ":")
	// The id of a federated user begins with the id of the account. The account itself has no
	// session.
	federated := session && strings.Trim(id, "0123456789") == ""
	return s == nil || id != "" && !federated && slices.Contains(s, id)
}

// Believed returns the message without the attributes that its sender may not set, and the names of
// these attributes. Believed does not change its argument.
func (s Senders) Believed(m Message) (believed Message, removed []string) {
	if s.Ours(m.Sender) {
		return m, nil
	}
	for _, name := range owned {
		if _, ok := m.Attributes[name]; !ok {
			continue
		}
		if removed = append(removed, name); len(removed) == 1 {
			m.Attributes = With(m.Attributes, name, Attribute{})
		}
		delete(m.Attributes, name)
	}
	return m, removed
}

// Foreign returns the message without the attributes that only lull may set. lull calls it when
// lull sends a message on behalf of an upstream.
func (o Outgoing) Foreign() Outgoing {
	m, _ := Senders{}.Believed(Message{Attributes: o.Attributes})
	o.Attributes = m.Attributes
	return o
}
