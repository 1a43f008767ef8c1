// SPDX-License-Identifier: Apache-2.0

package operate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/operator/rebuild"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
)

// errDenied is the answer of a queue that the role may not find.
var errDenied = errors.New("find queue lull-3-search-live: AccessDenied")

// spread makes the ground part 2 of some parts. It returns the bodies that the other parts got. If
// denied is set, part 3 cannot be found.
func (g *ground) spread(parts int, denied bool) map[int][]string {
	g.rig.Config.Stack, g.rig.Config.Parts = "lull-2", config.Parts{Of: parts, This: 2}
	got := map[int][]string{}
	g.Others = func(part int) operate.Other {
		return operate.Other{Queue: func(_ context.Context, sink string, lane flight.Lane) (queue.Queue, error) {
			if part == 3 && denied {
				return nil, errDenied
			}
			return gets(func(out []queue.Outgoing) []error {
				for _, m := range out {
					got[part] = append(got[part], fmt.Sprint(sink, " ", lane, " ", m.Body))
				}
				return nil
			}), nil
		}}
	}
	return got
}

// gets is a queue of another stack.
type gets func(out []queue.Outgoing) []error

func (q gets) Send(_ context.Context, out []queue.Outgoing) []error { return q(out) }

func (gets) Delete(context.Context, []string) []error { panic("a sender deletes nothing") }

func (gets) Hold(context.Context, []string, time.Duration) []error { panic("a sender holds nothing") }

func TestAPublicationSendsEachMessageToItsPart(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		others, want := g.spread(3, false), map[int]int{}
		var bodies []string
		for i := range 30 {
			bodies = append(bodies, put(fmt.Sprint(i), 1))
			want[event.Part("content", fmt.Sprint(i), 3)]++
		}
		bodies = append(bodies, "no event at all") // its document is unknown
		want[1]++
		done, err := api.Publish(t.Context(), operate.Publication{Messages: outgoing(bodies...), Unchecked: true})
		if err != nil || done.Messages != 31 || !maps.Equal(done.Parts, want) {
			t.Errorf("got %+v, %v, want %v", done, err, want)
		}
		if n := g.queues["search live"].Counts().Visible; n != want[2] {
			t.Errorf("this stack got %d messages, want %d", n, want[2])
		}
		for part, got := range others {
			for _, text := range got {
				body, live := strings.CutPrefix(text, "search live ")
				if e := g.rig.Sources.Decode(queue.Message{Body: body})[0]; !live ||
					e.Invalid == nil && g.rig.Config.PartOf(e.Event.Doc) != part || e.Invalid != nil && part != 1 {
					t.Errorf("part %d got %s", part, text)
				}
			}
			if len(got) != want[part] {
				t.Errorf("part %d got %d messages, want %d", part, len(got), want[part])
			}
		}
	})
}

// idOf returns an id of a document of a part.
func idOf(part, parts int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprint("d", i); event.Part("content", id, parts) == part {
			return id
		}
	}
}

func TestAnErrorNamesThePart(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.spread(3, true)
		_, err := api.Publish(t.Context(), operate.Publication{Messages: outgoing(put(idOf(3, 3), 1))})
		if err == nil || !strings.Contains(err.Error(), "part 3: "+errDenied.Error()) {
			t.Errorf("got %v, want it to name part 3 and %q", err, errDenied)
		}
	})
}

// A `lull dev` is one part, and reaches no other.
func TestAStackWithoutItsOthersRefusesTheirMessages(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.spread(3, false)
		g.Others = nil
		done, err := api.Publish(t.Context(), operate.Publication{
			Messages: outgoing(put(idOf(1, 3), 1), put(idOf(2, 3), 1)),
		})
		if err != nil || done.Messages != 1 || len(done.Refused) != 1 || done.Refused[0].Message != 0 ||
			done.Refused[0].Why != "it is of part 1 of 3, and this is stack lull-2 of part 2" {
			t.Errorf("got %+v, %v, want the first message refused", done, err)
		}
	})
}

func TestADocumentOfAnotherPartIsNotAskedForHere(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.spread(3, false)
		key := event.DocID("content#" + idOf(1, 3))
		want := fmt.Sprintf("key %s is of part 1 of 3, and this is stack lull-2 of part 2: use the settings of the other part",
			key)
		_, explained := api.Explain(t.Context(), key)
		_, got := api.Get(t.Context(), key)
		_, reset := api.Reset(t.Context(), operate.ResetOrder{Key: key, To: "1", By: "ann"})
		_, forgot := api.Forget(t.Context(), operate.ForgetOrder{Key: key, By: "ann"})
		_, listed := api.Documents(t.Context(), operate.DocumentFilter{Key: key})
		for question, err := range map[string]error{
			"explain": explained, "get": got, "reset": reset, "forget": forgot, "list": listed,
		} {
			if !errors.Is(err, operate.ErrInput) || err.Error() != want {
				t.Errorf("%s: got %v, want %q", question, err, want)
			}
		}
		if x, err := api.Explain(t.Context(), event.DocID("content#"+idOf(2, 3))); err != nil {
			t.Errorf("explain its own document: %+v, %v", x, err)
		}
	})
}

// The other stacks would go on writing to the old index only.
func TestAPartIsNotRebuiltAlone(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.spread(3, false)
		order := operate.RebuildOrder{Action: rebuild.Start, Collection: "content", By: "ann"}
		_, err := api.Rebuild(t.Context(), order)
		if !errors.Is(err, operate.ErrInput) ||
			!strings.Contains(err.Error(), "the other parts write to the same index") {
			t.Errorf("got %v, want it refused", err)
		}
	})
}

// The synthetic document of doctor belongs to the stack that it examines.
func TestAComposedMessageIsOfTheOwnPartIfWanted(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		g.spread(9, false)
		o := operate.Composition{ID: "lull-doctor", Own: true}
		m, err := api.Compose(t.Context(), o)
		if err != nil || !g.rig.Config.Ours(m.Key) || !strings.HasPrefix(m.Key.ID(), "lull-doctor") {
			t.Errorf("got %+v, %v, want a document of part 2", m, err)
		}
		o.Delete = true
		if again, err := api.Compose(t.Context(), o); err != nil || again.Key != m.Key {
			t.Errorf("got %s, %v, want %s again", again.Key, err, m.Key)
		}
	})
}

// Messages that were sent before may have gone to parts that do not have their documents any more.
func TestAJobContinuesOnlyWithTheSameNumberOfParts(t *testing.T) {
	everyWay(t, func(t *testing.T, g *ground, api operate.API) {
		got := g.spread(3, false)
		var lines []string
		for i := range 6 {
			lines = append(lines, put(fmt.Sprint(i), 1))
		}
		resync := func(parts, steps int) (job.State, error) {
			in := &feed.Reader{Open: func() (*feed.Export, error) {
				return feed.NewExport("export", 0, io.NopCloser(strings.NewReader(strings.Join(lines, "\n"))))
			}}
			defer func() { _ = in.Close() }()       // an input that was only read
			api.Parts = func() int { return parts } // the number in the present settings
			j := operate.ResyncJob(api, operate.ResyncOrder{Input: "export.ndjson"}, in,
				"01M85M8B5Q7XE1A51HGC49TZ0A", 1)
			step := j.Step
			type cursor = operate.ResyncCursor
			j.Step = func(ctx context.Context, at cursor, s *job.Step[operate.Refusal]) (cursor, bool, error) {
				if steps--; steps < 0 {
					return at, false, fmt.Errorf("%w: stop here", job.ErrWaits)
				}
				return step(ctx, at, s)
			}
			runner := job.Runner{Store: api.JobStore(), Clock: clock.System{}, By: "ann"}
			return job.Run(t.Context(), runner, j, func(operate.Refusal) {})
		}
		if _, err := resync(3, 2); !errors.Is(err, job.ErrWaits) {
			t.Fatal(err)
		}
		if _, err := resync(4, 100); !errors.Is(err, operate.ErrInput) && !errors.Is(err, job.ErrOther) ||
			!strings.Contains(err.Error(), `"parts.of":3`) || !strings.Contains(err.Error(), "lull jobs drop") {
			t.Errorf("with 4 parts: got %v, want it refused, and the 3 parts named", err)
		}
		state, err := resync(3, 100)
		want := map[int]int{}
		for i := range 6 {
			want[event.Part("content", fmt.Sprint(i), 3)]++
		}
		if err != nil || !maps.Equal(operate.PartsOf(state), want) || len(got[1]) != want[1] || len(got[3]) != want[3] {
			t.Errorf("got %+v, %v, want %v", state.Counts, err, want)
		}
	})
}
