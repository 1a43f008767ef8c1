// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
)

// resent writes some documents, and then starts a rebuild whose source sends all of them.
func (g *ground) resent() {
	g.Helper()
	g.fence = time.Now().UnixMicro()
	g.seed()
	g.sourced("a", "b", "d", "e", "f", "g")
}

// If the new index lacks a document that was written since the rebuild began, it missed that write.
// The source need not send such a document.
func TestAWriteThatTheNewIndexMissedIsCopiedBesideASource(t *testing.T) {
	play(t, func(g *ground) {
		g.resent()
		v := version{"late", time.Now().Add(2 * time.Hour).UnixMicro(), shard.Put}
		out := g.sink.Write(g.Context(), []sink.Op{{
			Doc: "content#late", Kind: shard.Put, Fence: shard.Fence(v.fence), Key: g.EventOf(usecasetest.Put("late", 1)).Key,
			Document: []byte(`{"by":"live traffic"}`),
		}})
		if out[0].Kind != sink.Applied {
			g.Fatal(out)
		}
		p, err := g.resume(g.service(), "ann", nil)
		if err != nil || p.Phase != rebuild.Done || p.Left != 0 {
			g.Fatalf("%+v, %v; want nothing left out", p, err)
		}
		if got := g.holds()["late"]; got != `{"by":"live traffic"}` {
			g.Errorf("readers find %q", got)
		}
	})
}

// The message count of a queue is only approximate, so one empty count is not enough.
func TestTheBulkLaneIsIdleWhenTwoLooksInARowSaySo(t *testing.T) {
	play(t, func(g *ground) {
		g.resent()
		looks := []bool{false, true, false, true, true}
		s := g.service()
		asked := 0
		s.Idle = func(context.Context) (bool, error) {
			asked++
			if asked > len(looks) {
				return false, errors.New("asked again")
			}
			return looks[asked-1], nil
		}
		p, err := g.resume(s, "ann", nil)
		if err != nil || p.Phase != rebuild.Done || asked != len(looks) {
			g.Errorf("%+v, %v, asked %d times, want %d", p, err, asked, len(looks))
		}
	})
}

// unaliased is a sink whose name is the index in use itself, so the switch deletes that index.
type unaliased struct {
	wall
	dropped *[]string
}

func (u unaliased) Standing(ctx context.Context, c shard.Collection) (sink.Standing, error) {
	at, err := u.wall.Standing(ctx, c)
	at.Alias = false
	return at, err
}

func (u unaliased) Drop(ctx context.Context, index string) error {
	*u.dropped = append(*u.dropped, index)
	return u.wall.Drop(ctx, index)
}

// The switch gave the name of the old index to the new one, so deleting that name again would
// delete the new index.
func TestAnIndexWhoseNameTheNewOneTookIsNotDeletedOnceMore(t *testing.T) {
	play(t, func(g *ground) {
		g.seed()
		var dropped []string
		s := g.service()
		s.Sink = unaliased{wall{g.sink, g}, &dropped}
		order := g.order()
		order.Drop = true
		p, err := g.startWith(s, order)
		if err != nil || p.Phase != rebuild.Done || slices.Contains(dropped, p.Old) {
			g.Errorf("%+v, %v, deleted %q; want %s left alone", p, err, dropped, p.Old)
		}
		g.settled("at the end")
	})
}
