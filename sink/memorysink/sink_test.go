// SPDX-License-Identifier: Apache-2.0

package memorysink_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
)

func put(doc shard.DocID, fence shard.Fence, body string) sink.Op {
	return sink.Op{Doc: doc, Kind: shard.Put, Fence: fence, Version: "1", Document: []byte(body)}
}

func del(doc shard.DocID, fence shard.Fence) sink.Op {
	return sink.Op{Doc: doc, Kind: shard.Delete, Fence: fence}
}

func kinds(out []sink.Outcome) []sink.OutcomeKind {
	k := make([]sink.OutcomeKind, len(out))
	for i := range out {
		k[i] = out[i].Kind
	}
	return k
}

func expect(t *testing.T, s *memorysink.Sink, ops []sink.Op, want ...sink.OutcomeKind) {
	t.Helper()
	if got := kinds(s.Write(t.Context(), ops)); !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
}

func TestASinkForgetsDeletes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memorysink.New(clock.System{}, memorysink.Settings{Versions: true, ForgetAfter: time.Minute})
		expect(t, s, []sink.Op{del("a#1", 10)}, sink.Applied)
		time.Sleep(time.Minute - 1)
		expect(t, s, []sink.Op{put("a#1", 9, `{}`)}, sink.Newer)
		time.Sleep(time.Nanosecond)
		expect(t, s, []sink.Op{put("a#1", 9, `{}`)}, sink.Applied)
	})
}

func TestScriptedAnswersComeFirst(t *testing.T) {
	t.Parallel()
	s := memorysink.New(clock.System{}, memorysink.Settings{Versions: true, RememberOps: true})
	throttled := memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Throttled, RetryAfter: time.Second}}
	lost := memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Unknown}, Apply: true}
	s.Script("a#1", throttled, lost)
	ops := []sink.Op{put("a#1", 1, `{}`), put("a#2", 1, `{}`)}
	expect(t, s, ops, sink.Throttled, sink.Applied)
	if _, ok, _ := s.Get(t.Context(), "a#1"); ok {
		t.Error("a throttled write was applied")
	}
	expect(t, s, ops, sink.Unknown, sink.Applied)
	if _, ok, _ := s.Get(t.Context(), "a#1"); !ok {
		t.Error("the write whose answer was lost was not applied")
	}
	expect(t, s, ops, sink.Applied, sink.Applied)
	s.ScriptRequests(throttled)
	expect(t, s, ops, sink.Throttled, sink.Throttled)
	s.SetRule(func(op sink.Op) (memorysink.Answer, bool) {
		return memorysink.Answer{Outcome: sink.Outcome{Kind: sink.Rejected}}, op.Doc == "a#2"
	})
	expect(t, s, ops, sink.Applied, sink.Rejected)
	s.SetDown(errors.New("down"))
	expect(t, s, ops, sink.Unknown, sink.Unknown)
	if s.Ping(t.Context()) == nil {
		t.Error("a sink that is down answered a ping")
	}
	s.SetDown(nil)
	s.SetRule(nil)
	expect(t, s, ops, sink.Applied, sink.Applied)
	if got, want := len(s.History("a#1")), 4; got != want {
		t.Errorf("%d ops applied to a#1, want %d", got, want)
	}
}

func TestAWriteWithoutAnAnswerInTimeIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memorysink.New(clock.System{}, memorysink.Settings{Latency: 2 * time.Second, MaxDocuments: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		got := kinds(s.Write(ctx, []sink.Op{put("a#1", 1, `{}`), put("a#2", 1, `{}`), put("a#3", 1, `{}`)}))
		if want := []sink.OutcomeKind{sink.Applied, sink.Unknown, sink.Throttled}; !slices.Equal(got, want) {
			t.Errorf("outcomes %v, want %v", got, want)
		}
	})
}
