// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/lullhq/lull/internal/seam/queue"
)

// The cases are every attribute of lull, from every kind of sender.
func TestOnlyLullsOwnRolesSetItsAttributes(t *testing.T) {
	t.Parallel()
	const everybody, ours = true, false
	attributes := map[string]bool{
		queue.AttrSource: everybody, queue.AttrGroup: everybody, queue.AttrFirstSent: everybody,
		queue.AttrTrace: everybody, queue.AttrLetter: everybody, "content_type": everybody,
		queue.AttrLine: ours, queue.AttrPart: ours, queue.AttrEvent: ours,
	}
	senders := queue.Senders{"AROARECEIVE", "AROAPRUNE", "AROAOPERATOR", "111122223333"}
	for sender, believed := range map[string]bool{
		"AROARECEIVE:lull-search-receive": true, "AROARECEIVE": true, "AROAPRUNE:lull-search-prune": true,
		"AROAOPERATOR:ann": true, "111122223333": true, // the account itself; an emulator gives this id to every sender
		"AROAPUBLISHER:ann": false, "AROAPIPE:pipe": false, "AIDASERVICE": false, "AROASTRANGER:AROARECEIVE": false,
		"AROARECEIVE2:x": false, "AROARECEIV:E": false, "aroareceive:x": false, "": false, ":": false,
		"x:AROARECEIVE": false, "111122223333:guest": false,
	} {
		for name, open := range attributes {
			m := queue.Message{Body: "b", Sender: sender, Attributes: map[string]queue.Attribute{
				name: queue.Text("1"), "other": queue.Text("2"),
			}}
			given := maps.Clone(m.Attributes)
			got, removed := senders.Believed(m)
			_, kept := got.Attributes[name]
			if kept != (believed || open) || kept != (removed == nil) || got.Attributes["other"].String != "2" {
				t.Errorf("%s from %q: kept %t, removed %v", name, sender, kept, removed)
			}
			if senders.Ours(sender) != believed || !maps.EqualFunc(m.Attributes, given, same) {
				t.Errorf("%s from %q: ours %t; the attributes are %v now", name, sender, senders.Ours(sender), m.Attributes)
			}
			if got, removed := queue.Senders(nil).Believed(m); removed != nil || len(got.Attributes) != 2 {
				t.Errorf("%s in one process: removed %v", name, removed)
			}
		}
	}
	all := map[string]queue.Attribute{}
	for name := range attributes {
		all[name] = queue.Text("1")
	}
	got, removed := queue.Senders{}.Believed(queue.Message{Attributes: all})
	if len(got.Attributes) != 6 || !slices.Equal(removed, []string{queue.AttrLine, queue.AttrPart, queue.AttrEvent}) {
		t.Errorf("an empty list of senders: %v left, %v removed", got.Attributes, removed)
	}
}

func TestAForeignMessageHasNoAttributeThatOnlyLullMaySet(t *testing.T) {
	t.Parallel()
	out := queue.Outgoing{Body: "b", Attributes: map[string]queue.Attribute{
		queue.AttrLine: queue.Text("1"), queue.AttrGroup: queue.Text("g"),
	}}
	got := out.Foreign()
	if len(got.Attributes) != 1 || queue.Group(got.Attributes) != "g" || len(out.Attributes) != 2 {
		t.Errorf("got %+v of %+v", got, out)
	}
}

func same(a, b queue.Attribute) bool { return a.String == b.String }
