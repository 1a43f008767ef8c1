// SPDX-License-Identifier: Apache-2.0

package story_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/local/story"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// numbers returns the numbers of the lines of a page, and how many decisions were passed over.
func numbers(p operate.TailPage) string {
	var all []string
	for _, l := range p.Lines {
		all = append(all, fmt.Sprint(l.Number))
	}
	return fmt.Sprintf("%s passed %d next %d", strings.Join(all, " "), p.Passed, p.Next)
}

func TestATailHasTheNewestDecisionsThatAQuerySelects(t *testing.T) {
	t.Parallel()
	r := &story.Recorder{}
	tail := func(q operate.TailQuery) string { return numbers(usecasetest.Must(r.Tail(q))(t)) }
	if got, want := tail(operate.TailQuery{}), " passed 0 next 0"; got != want {
		t.Errorf("an empty tail: got %q, want %q", got, want)
	}
	r.Note(journal.Note{Step: journal.Deleted, Doc: "content#a"}) // it has no line
	for _, n := range []journal.Note{
		{Step: journal.Admitted, Doc: "content#a", Sink: "search"},
		{Step: journal.Held, Doc: "content#b", Sink: "search", Message: "m-7"},
		{Step: journal.CircuitOpened, Sink: "vectors", Detail: "No Answer"},
		{Step: journal.Stale, Doc: "news@vectors#c", Sink: "vectors"},
		{Step: journal.Parked, Doc: "content#<script>", Sink: "search"},
	} {
		r.Note(n)
	}
	for name, tt := range map[string]struct {
		q    operate.TailQuery
		want string
	}{
		"all":         {operate.TailQuery{}, "1 2 3 4 5 passed 0 next 5"},
		"the newest":  {operate.TailQuery{Limit: 2}, "4 5 passed 3 next 5"},
		"after":       {operate.TailQuery{After: 3}, "4 5 passed 0 next 5"},
		"after, two":  {operate.TailQuery{After: 1, Limit: 2}, "4 5 passed 2 next 5"},
		"the future":  {operate.TailQuery{After: 1 << 63}, " passed 0 next 5"},
		"sink":        {operate.TailQuery{Sink: "vectors"}, "3 4 passed 0 next 5"},
		"collection":  {operate.TailQuery{Collection: "news"}, "4 passed 0 next 5"},
		"word":        {operate.TailQuery{Word: "HOLD"}, "2 passed 0 next 5"},
		"text":        {operate.TailQuery{Contains: "no answer"}, "3 passed 0 next 5"},
		"key":         {operate.TailQuery{Contains: "<SCRIPT>"}, "5 passed 0 next 5"},
		"message":     {operate.TailQuery{Contains: "m-7"}, "2 passed 0 next 5"},
		"nothing":     {operate.TailQuery{Sink: "search", Word: "BREAKER"}, " passed 0 next 5"},
		"filter, one": {operate.TailQuery{Sink: "search", Limit: 1}, "5 passed 2 next 5"},
	} {
		if got := tail(tt.q); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	for _, limit := range []int{-1, 501} {
		if _, err := r.Tail(operate.TailQuery{Limit: limit}); err == nil {
			t.Errorf("limit %d is allowed", limit)
		}
	}
}

// The recorder keeps a bounded number of decisions. A tail that fell behind says how many it
// missed.
func TestATailThatFellBehindSaysHowManyItMissed(t *testing.T) {
	t.Parallel()
	r := &story.Recorder{}
	const all, kept = 50_000, 20_000
	for i := range all {
		doc := shard.DocID(fmt.Sprint("content#", i))
		r.Note(journal.Note{Step: journal.Held, Doc: doc, At: time.Unix(int64(i), 0)})
	}
	p := usecasetest.Must(r.Tail(operate.TailQuery{After: all - kept - 100, Limit: 3}))(t)
	if got, want := numbers(p), fmt.Sprintf("%d %d %d passed %d next %d", all-2, all-1, all, kept+100-3, all); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if last := p.Lines[2]; last.Doc != "content#49999" || last.Step != "HOLD" || len(p.Words) < 20 {
		t.Errorf("the last line is %+v, and the words are %v", last, p.Words)
	}
	if got := usecasetest.Must(r.Tail(operate.TailQuery{Contains: "content#30000 "}))(t); len(got.Lines) != 1 {
		t.Errorf("the oldest decision that is kept is not found: %+v", got)
	}
}

// A tail reads while decisions are made. It has each decision once, in order.
func TestATailIsWholeWhileDecisionsAreMade(t *testing.T) {
	t.Parallel()
	r := &story.Recorder{}
	var made sync.WaitGroup
	const each = 2000
	for range 4 {
		made.Go(func() {
			for range each {
				r.Note(journal.Note{Step: journal.Held, Doc: "content#a"})
			}
		})
	}
	var after, told uint64
	for told < 4*each {
		p := usecasetest.Must(r.Tail(operate.TailQuery{After: after, Limit: 500}))(t)
		for i, l := range p.Lines {
			if l.Number != p.Next-uint64(len(p.Lines)-1-i) {
				t.Fatalf("line %d has the number %d, next is %d", i, l.Number, p.Next)
			}
		}
		if after == 0 {
			told = p.Next // the first answer does not say how many are older
		} else {
			told += uint64(len(p.Lines) + p.Passed)
		}
		after = p.Next
	}
	made.Wait()
	if told != 4*each {
		t.Errorf("%d decisions were told, want %d", told, 4*each)
	}
}
