// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/pipeline/payload"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

// Another program deletes a document from the index, or writes a document again that lull deleted.
func TestSomebodyElsesChangesOfTheIndexAreDrift(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg  func(*config.Config)
		want int
	}{
		"as it is":         {nil, 2},
		"a turned-off one": {func(c *config.Config) { c.Lifecycle.DriftSample = 0 }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			stage{cfg: tt.cfg}.play(t, func(s *scene) {
				s.send(put(0, "lost", 1), put(0, "gone", 1), put(0, "fine", 1))
				s.settle()
				s.send(del(0, "gone", 2))
				s.settle()
				s.wait(11 * time.Minute)
				s.noted(journal.Drift, 0)
				for id, op := range map[string]sink.Op{
					"lost": {Kind: shard.Delete},
					"gone": {Kind: shard.Put, Document: []byte("{}"), Key: s.row("fine").Committed},
				} {
					op.Doc, op.Fence = s.row(id).Doc, shard.Fence(time.Now().UnixMicro())
					s.sink.Write(s.ctx, []sink.Op{op})
				}
				s.wait(5*time.Minute + 3*time.Minute)
				s.noted(journal.Drift, tt.want)
			})
		})
	}
}

// lull dev verifies on the schedule of the settings. Each loss is healed when the next verification
// is due, without an operator.
func TestAScheduledVerificationHealsWithoutAnOperator(t *testing.T) {
	versions := map[string]int{"lost": 1, "older": 2, "changed": 1, "fine": 1, "rowless": 1}
	objects := func(_ context.Context, _, key string) ([]byte, error) {
		v := versions[strings.TrimSuffix(key, ".json")]
		if v == 0 {
			return nil, payload.Missing()
		}
		return fmt.Appendf(nil, `{"title":"v%d"}`, v), nil
	}
	stage{objects: objects, cfg: func(c *config.Config) {
		c.Lifecycle.DriftSample = 0
		c.Collections = map[string]config.Collection{"content": {Verify: &config.Verify{}}}
		s := c.Sources["native"]
		s.Fetch = &source.Fetch{URL: "s3://cms-content/{id}.json"}
		c.Sources["native"] = s
	}}.play(t, func(s *scene) {
		touch := func(id string, v int) feed.Timed {
			return feed.Timed{Outgoing: queue.Outgoing{
				Body: fmt.Sprintf(`{"type":"doc.touched","subject":%q,"sequence":"%d"}`, id, v),
			}}
		}
		for id, v := range versions {
			s.send(touch(id, v))
		}
		s.wait(30 * time.Minute)
		jobs, err := s.e.Operator(nil).API().Jobs(s.ctx)
		if err != nil || len(jobs) != 1 || jobs[0].Phase != job.Done || jobs[0].Counts["documents"] != len(versions) {
			t.Fatalf("got %+v, %v, want one verification that is done", jobs, err)
		}
		begun := jobs[0].Begun
		fence := shard.Fence(time.Now().UnixMicro())
		s.sink.Write(s.ctx, []sink.Op{
			{Doc: "content#lost", Kind: shard.Delete, Fence: fence},
			{
				Doc: "content#changed", Kind: shard.Put, Fence: fence, Document: []byte(`{"title":"by hand"}`),
				Key: s.row("changed").Committed, Version: "1",
			},
		})
		versions["older"] = 3 // the event of this change is lost
		if _, err := s.e.Shards.Write(s.ctx, shardtest.Put(shard.Row{Doc: "content#rowless"})); err != nil {
			t.Fatal(err)
		}
		s.wait(24*time.Hour - time.Since(begun) + 15*time.Minute)
		s.noted(journal.Drift, 4) // lost, older, changed and rowless
		for id, v := range versions {
			got, there, err := s.sink.Get(s.ctx, shard.DocID("content#"+id))
			want, row := fmt.Sprintf(`{"title":"v%d"}`, v), s.row(id).Committed.String()
			if err != nil || !there || string(got.Document) != want || row != got.Key {
				t.Errorf("%s: got %s at %s, %v, the row is at %s; want %s", id, got.Document, got.Key, err, row, want)
			}
		}
	})
}
