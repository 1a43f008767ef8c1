// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

// picky is an engine that leaves values out.
type picky struct {
	*memorysink.Sink

	omitted sink.Omitted
	err     error
}

func (p picky) Omitted(context.Context, shard.Collection) (sink.Omitted, error) {
	return p.omitted, p.err
}

func TestWhatSearchesDoNotFindIsCounted(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		q := operate.UnsearchableQuery{Collection: "content"}
		if u, err := api.Unsearchable(t.Context(), q); err != nil || u.Known {
			t.Errorf("an engine that cannot tell: %+v, %v", u, err)
		}
		some := sink.Omitted{Documents: 12, Some: []shard.DocID{"content#a"}, Fields: []string{"price"}}
		g.Readers["search"] = picky{g.sink, some, nil}
		want := operate.Unsearchable{Known: true, Documents: 12, Some: some.Some, Fields: some.Fields}
		if u, err := api.Unsearchable(t.Context(), q); err != nil || !reflect.DeepEqual(u, want) {
			t.Errorf("got %+v, %v, want %+v", u, err, want)
		}
		g.Readers["search"] = picky{g.sink, some, errors.New("no route to host")}
		if _, err := api.Unsearchable(t.Context(), q); err == nil {
			t.Error("an engine that is away: no error")
		}
		if _, err := api.Unsearchable(t.Context(), operate.UnsearchableQuery{Collection: "none"}); err == nil {
			t.Error("a collection that does not exist: no error")
		}
	})
}
