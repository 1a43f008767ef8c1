// SPDX-License-Identifier: Apache-2.0

package rebuild_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
)

// known writes a document as write does, and also commits the version in a row.
func (g *ground) known(id string, kind shard.Operation) {
	g.Helper()
	g.write(id, kind)
	e := g.EventOf(usecasetest.Put(id, int(g.fence)))
	g.Admit(e)
	g.Commit(g.Claim(e), kind)
}

// sourced starts a rebuild that the source fills, and sends lines for some documents.
func (g *ground) sourced(ids ...string) {
	g.Helper()
	g.fence = time.Now().Add(time.Hour).UnixMicro()
	order := g.order()
	order.Source = true
	p, err := g.startWith(g.service(), order)
	if err != nil || p.Phase != rebuild.Sourcing {
		g.Fatalf("%+v, %v; want it to wait for the source", p, err)
	}
	for _, id := range ids {
		g.write(id, shard.Put)
	}
}

func TestWhatIsNewerThanTheExportIsCopied(t *testing.T) {
	play(t, func(g *ground) {
		g.fence = time.Now().UnixMicro()
		g.known("a", shard.Put)
		g.known("b", shard.Put) // its row refuses the source's line as stale, so nothing is written
		g.known("c", shard.Put)
		g.write("d", shard.Put) // it has no row, so a line of the source would have been written
		g.sourced("a")
		g.known("e", shard.Put) // it is not in the export, but was written to both indices
		p, err := g.resume(g.service(), "ann", nil)
		if !errors.Is(err, rebuild.ErrRefused) || p.Left != 1 || p.Refused[0].ID != "d" {
			g.Fatalf("got %+v, %v; want only d to be left out", p, err)
		}
		one := 1
		p, err = g.resume(g.service(), "ann", &one)
		if err != nil || p.Newer != 2 || fmt.Sprint(p.NewerIDs) != "[b c]" {
			g.Fatalf("%+v, %v; want b and c to be newer than the export", p, err)
		}
		delete(g.committed, "d")
		g.settled("at the end")
	})
}

func TestADeletedRowIsNoReasonToCopyADocument(t *testing.T) {
	play(t, func(g *ground) {
		g.fence = time.Now().UnixMicro()
		g.known("a", shard.Put)
		g.write("b", shard.Put)
		e := g.EventOf(usecasetest.Put("b", int(g.fence)))
		g.Admit(e)
		g.Commit(g.Claim(e), shard.Delete)
		g.sourced("a")
		if p, err := g.resume(g.service(), "ann", nil); !errors.Is(err, rebuild.ErrRefused) ||
			p.Left != 1 || p.Newer != 0 || p.Refused[0].ID != "b" {
			g.Fatalf("%+v, %v; want b to be left out", p, err)
		}
	})
}

func TestWhatIsNewerThanTheExportAndRefusedIsLeftOutByNameOnly(t *testing.T) {
	play(t, func(g *ground) {
		g.fence = time.Now().UnixMicro()
		g.known("a", shard.Put)
		g.known("b", shard.Put)
		g.sourced("a")
		g.strict("b")
		if p, err := g.resume(g.service(), "ann", nil); !errors.Is(err, rebuild.ErrRefused) ||
			p.Left != 1 || p.Newer != 0 || p.Refused[0].ID != "b" {
			g.Fatalf("%+v, %v; want b to be left out", p, err)
		}
	})
}
