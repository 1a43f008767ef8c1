// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
)

// service is a test's enricher: it answers each document by itself, in order.
type service struct {
	// guards the fields below, and the variables that the functions use
	mu    sync.Mutex
	calls [][]string    // the document ids of each request
	took  time.Duration // time that each request takes
	each  time.Duration // additional time for each document in a request
	// returns the answer for one document without its id, "" to leave the document out
	one   func(id string) string
	whole func(ids []string) (text string, err error) // if not nil, returns the whole answer instead
}

func (s *service) Call(ctx context.Context, request []byte) ([]byte, error) {
	var r struct{ Documents []enrich.Document }
	if err := json.Unmarshal(request, &r); err != nil {
		return nil, err
	}
	var ids []string
	for _, d := range r.Documents {
		ids = append(ids, d.ID)
	}
	s.mu.Lock()
	s.calls = append(s.calls, ids)
	s.mu.Unlock()
	if took := s.took + time.Duration(len(ids))*s.each; took > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(took):
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole != nil {
		if text, err := s.whole(ids); text != "" || err != nil {
			return []byte(text), err
		}
	}
	return []byte(s.answer(ids)), nil
}

func (s *service) answer(ids []string) string {
	var items []string
	for _, id := range ids {
		item := `"fields":{"vector":[1,2]}`
		if s.one != nil {
			item = s.one(id)
		}
		if item != "" {
			items = append(items, fmt.Sprintf(`{"id":%q,%s}`, id, item))
		}
	}
	return `{"documents":[` + strings.Join(items, ",") + `]}`
}

// enriched configures an enricher for the collection "content".
func enriched(c *config.Config) {
	c.Collections = map[string]config.Collection{"content": {Enrich: &config.Enrich{
		Kind: config.EnrichHTTP, URL: "https://enrich.example.org/", Inputs: []string{"/title"},
	}}}
	c.Complete()
}

// titled returns a put of a version of a document. The title contains the id and the version.
func titled(id string, version int) string {
	return fmt.Sprintf(
		`{"type":"doc.changed","subject":%q,"sequence":"%d","data":{"title":"T %s %d"}}`,
		id,
		version,
		id,
		version,
	)
}

// lands makes turns of a flight, and of the flights that follow it, until nothing is left. It makes
// at most the given number of turns.
func (b *bench) lands(s flight.State, most int) {
	b.Helper()
	legs := len(b.launched.list)
	for range most {
		if s.Done && legs == len(b.launched.list) {
			if b.live.Counts().Total() == 0 {
				return
			}
			time.Sleep(5 * time.Minute) // the messages wait only in the queue, for at most four minutes
			s = b.receive(flight.Live)
			legs = len(b.launched.list)
		}
		if s.Done {
			s, legs = b.launched.list[legs], legs+1
		}
		s = b.turn(s)
	}
	b.Errorf("not done after %d turns", most)
}

func TestADocumentIsEnrichedOncePerBurst(t *testing.T) {
	stage{cfg: enriched}.play(t, func(b *bench) {
		s := &service{}
		b.enricher = s
		b.fly(b.hold(titled("a", 1), titled("a", 3), titled("a", 2), titled("b", 1),
			`{"type":"doc.deleted","subject":"c","sequence":"1"}`), 1)
		b.shows("a", `{"title":"T a 3","vector":[1,2]}`)
		b.shows("b", `{"title":"T b 1","vector":[1,2]}`)
		if got := fmt.Sprint(s.calls); got != "[[a b]]" {
			b.Errorf("asked for %s, want one request for the newest versions of a and b, and none for a delete", got)
		}
		b.Noted(journal.EnrichCalled, 1)
		b.Noted(journal.Enriched, 2)
		b.Noted(journal.Committed, 3)
		b.inQueue(0)
	})
}

// A burst that changes nothing costs no call to the service. lull compares the bytes before
// enrichment, because the added fields may differ from call to call. Another version of the service
// makes every document count as changed.
func TestAnUnchangedDocumentIsNotEnriched(t *testing.T) {
	stage{cfg: func(c *config.Config) { keeps(c); enriched(c) }}.play(t, func(b *bench) {
		s := &service{}
		s.one = func(string) string { return fmt.Sprintf(`"fields":{"call":%d}`, len(s.calls)) }
		b.enricher = s
		same := func(version int) string {
			return fmt.Sprintf(`{"type":"doc.changed","subject":"a","sequence":"%d","data":{"title":"T"}}`, version)
		}
		b.fly(b.hold(same(1)), 1)
		time.Sleep(time.Minute)
		b.fly(b.hold(same(2), same(3)), 1)
		if len(s.calls) != 1 {
			b.Errorf("asked %d times, want once for the first burst and never for the second", len(s.calls))
		}
		b.Noted(journal.Kept, 1)
		b.shows("a", `{"title":"T","call":1}`)
		b.Config.Collections["content"].Enrich.Version = "another model"
		time.Sleep(time.Minute)
		b.fly(b.hold(same(4)), 1)
		b.shows("a", `{"title":"T","call":2}`)
		time.Sleep(time.Minute)
		b.fly(b.hold(same(5)), 1)
		b.Noted(journal.Kept, 2)
	})
}

// The payload of the document is loaded under the lease. If the loaded document has not changed, it
// is not enriched.
func TestAnUnchangedPayloadIsNotEnriched(t *testing.T) {
	stage{cfg: func(c *config.Config) { keeps(c); enriched(c) }}.play(t, func(b *bench) {
		b.objects(func(string) ([]byte, error) { return []byte(`{"title":"T"}`), nil })
		s := &service{}
		b.enricher = s
		for version := range 3 {
			b.fly(b.hold(touched("a", version+1)), 1)
			time.Sleep(time.Minute)
		}
		if b.Noted(journal.Kept, 2); len(s.calls) != 1 {
			b.Errorf("asked %d times, want once", len(s.calls))
		}
		b.shows("a", `{"title":"T","vector":[1,2]}`)
	})
}

func TestWhatTheServiceNeedNotSeeIsWrittenAsItIs(t *testing.T) {
	stage{cfg: func(c *config.Config) {
		enriched(c)
		c.Collections["plain"] = config.Collection{}
	}}.play(t, func(b *bench) {
		s := &service{}
		b.enricher = s
		b.fly(b.hold(`{"type":"doc.changed","subject":"a","sequence":"1","data":{"name":"no input"}}`,
			`{"type":"doc.changed","subject":"b","sequence":"1","collection":"plain","data":{"title":"other"}}`), 1)
		b.shows("a", `{"name":"no input"}`)
		if len(s.calls) != 0 {
			b.Errorf("asked for %v, want nothing asked", s.calls)
		}
		b.Noted(journal.Committed, 2)
	})
}

// Each answer has a defined outcome, and the failure of one document does not affect another.
func TestWhatBecomesOfEachAnswer(t *testing.T) {
	type row struct {
		item    string // the service's answer for the document "bad"
		shows   string // the content of the document "bad" in the end, "" for none
		reason  deadletter.Reason
		detail  string
		refused int // refusals that the row of "bad" counts after the first turn
	}
	usecasetest.Table(t, stage{cfg: enriched}.play, map[string]row{
		"null removes a field": {`"fields":{"title":null,"n":1}`, `{"n":1}`, "", "", 0},
		"a field is replaced":  {`"fields":{"title":"new","n":{"deep":[1.50]}}`, `{"title":"new","n":{"deep":[1.50]}}`, "", "", 0},
		"no fields at all":     {`"fields":{}`, `{"title":"T bad 1"}`, "", "", 0},
		"refused for good": {
			`"error":{"kind":"rejected","reason":"too\nlong"}`, "", deadletter.EnrichRejected, "too long", 0,
		},
		"left out":          {"", "", deadletter.Refusals, "leaves it out", 1},
		"failed":            {`"error":{"kind":"failed","reason":"oops"}`, "", deadletter.Refusals, "oops", 1},
		"an unknown kind":   {`"error":{"kind":"???"}`, "", deadletter.Refusals, "", 1},
		"neither":           {`"other":1`, "", deadletter.Refusals, "neither fields nor an error", 1},
		"fields of a kind":  {`"fields":[1]`, "", deadletter.Refusals, "neither fields nor an error", 1},
		"twice":             {`"fields":{}},{"id":"bad","fields":{"x":1}`, "", deadletter.Refusals, "more than once", 1},
		"lull's own member": {`"fields":{"_lull":{"fence":9}}`, "", deadletter.Refusals, "_lull", 1},
		"too large": {
			`"fields":{"x":"` + strings.Repeat("x", enrich.MaxFields) + `"}`, "", deadletter.Refusals, "more than 1048576 bytes", 1,
		},
	}, func(b *bench, c row) {
		b.enricher = &service{one: func(id string) string {
			if id == "bad" {
				return c.item
			}
			return `"fields":{}},{"id":"stranger","fields":{}`
		}}
		s := b.turn(b.hold(titled("bad", 1), titled("good", 1)))
		b.holds("good", "1")
		if r := b.Row(doc("bad")); r.Refusals != int64(c.refused) || r.Owner != "" {
			b.Errorf("row %+v, want %d refusals and no lease", r, c.refused)
		}
		b.lands(s, 20)
		if c.shows != "" {
			b.shows("bad", c.shows)
		} else {
			b.holds("bad", "")
		}
		l := b.TakeLetters(b.dead)
		if (c.reason == "") != (len(l) == 0) {
			b.Fatalf("dead letters %+v, want %q", l, c.reason)
		}
		if len(l) > 0 && (l[0].Reason != c.reason || !strings.Contains(l[0].Detail, c.detail)) {
			b.Errorf("dead letter %s: %s, want %s: %s", l[0].Reason, l[0].Detail, c.reason, c.detail)
		}
		b.Noted(journal.OutcomeUnknown, 0)
		b.inQueue(0)
	})
}

// Whatever a service answers to a whole request, no document becomes a dead letter or has an
// unknown outcome. All documents are written when the service is back.
func TestAServiceThatFailsCostsNoDocument(t *testing.T) {
	usecasetest.Table(t, stage{cfg: enriched}.play, map[string]func([]string) (string, error){
		"down":       func([]string) (string, error) { return "", &enrich.Failure{Reason: "it cannot be connected to"} },
		"500":        func([]string) (string, error) { return "", &enrich.Failure{Smaller: true, Reason: "it answered 500"} },
		"not JSON":   func([]string) (string, error) { return "<html>", nil },
		"other JSON": func([]string) (string, error) { return `{"message":"hello"}`, nil },
		"other ids":  func([]string) (string, error) { return `{"documents":[{"id":"x","fields":{}}]}`, nil },
		"too much":   func([]string) (string, error) { return strings.Repeat(" ", enrich.MaxAnswer+1), nil },
		"any error":  func([]string) (string, error) { return "", errors.New("with a secret") },
		"panic":      func([]string) (string, error) { panic("with content") },
		"throttles": func([]string) (string, error) {
			return "", &enrich.Failure{Throttled: true, RetryAfter: 3 * time.Second, Reason: "it answered 429"}
		},
	}, func(b *bench, fail func([]string) (string, error)) {
		back := time.Now().Add(3 * time.Minute)
		down := 0
		svc := &service{}
		svc.whole = func(ids []string) (string, error) {
			if time.Now().Before(back) {
				down++
				return fail(ids)
			}
			return "", nil
		}
		b.enricher = svc
		b.lands(b.hold(many(40, titled, "d")...), 100)
		for i := range 40 {
			b.holds(fmt.Sprint("d", i), "1")
		}
		b.WantLetters(b.dead, 0)
		if down > 30 {
			b.Errorf("%d requests in 3 minutes while the service was away, want few", down)
		}
		if n := len(b.Notes.Of(journal.Claimed)); n > 40+40+30 {
			b.Errorf("%d claims, want few while the service is away", n)
		}
		for _, n := range b.Notes.All() {
			if strings.Contains(n.Detail, "secret") || strings.Contains(n.Detail, "with content") {
				b.Errorf("note %+v contains text of the error", n)
			}
		}
		b.Noted(journal.OutcomeUnknown, 0)
		b.Noted(journal.LeaseLost, 0)
		b.inQueue(0)
	})
}

// While a service is away, no message waits in a flight, because flights hold only a bounded number
// of messages. The messages wait in the queue and are written when the service is back.
func TestWhileAServiceIsAwayMessagesWaitInTheQueue(t *testing.T) {
	stage{cfg: enriched}.play(t, func(b *bench) {
		back := false
		b.enricher = &service{whole: func([]string) (string, error) {
			if !back {
				return "", &enrich.Failure{Reason: "it cannot be connected to"}
			}
			return "", nil
		}}
		s := b.hold(many(40, titled, "d")...)
		for turns := 0; !s.Done; turns++ {
			if turns == 30 {
				b.Fatal("the flight waits for the service, want it to end")
			}
			s = b.turn(s)
		}
		if notes := b.Notes.Of(journal.Away); len(notes) == 0 || notes[0].Detail != "the enricher is away" {
			b.Errorf("got %+v, want the messages to wait in the queue", notes)
		}
		b.Noted(journal.OutcomeUnknown, 0)
		b.inQueue(40)
		back = true
		time.Sleep(5 * time.Minute)
		b.lands(b.receive(flight.Live), 20)
		b.Noted(journal.Committed, 40)
		b.inQueue(0)
	})
}

// lull finds a document that the service always fails on, and makes it a dead letter. The other
// documents of its requests are written in the first turn.
func TestOnePoisonousDocumentStarvesNobody(t *testing.T) {
	stage{cfg: enriched}.play(t, func(b *bench) {
		svc := &service{whole: func(ids []string) (string, error) {
			for _, id := range ids {
				if id == "d17" {
					return "", &enrich.Failure{Smaller: true, Reason: "it answered 500"}
				}
			}
			return "", nil
		}}
		b.enricher = svc
		s := b.turn(b.hold(many(40, titled, "d")...))
		b.Noted(journal.Committed, 39)
		if len(svc.calls) > 12 {
			b.Errorf("%d requests to find one bad document in 40, want fewer", len(svc.calls))
		}
		b.lands(s, 20)
		l := b.TakeLetters(b.dead)
		if b.Noted(journal.EnrichAway, 0); len(l) != 1 || l[0].Reason != deadletter.Refusals {
			b.Errorf("dead letters %+v, want one, for the bad document", l)
		}
	})
}

// 2,000 documents are due. Each document is loaded by reference in 200 ms, and a request to the
// enricher takes a second. A turn claims only what it can load, enrich and write.
func TestATurnClaimsOnlyWhatItCanEnrichAndWrite(t *testing.T) {
	stage{cfg: func(c *config.Config) { enriched(c); openBucket(c) }}.play(t, func(b *bench) {
		b.objects(func(key string) ([]byte, error) {
			time.Sleep(200 * time.Millisecond)
			return []byte(`{"title":"` + key + `"}`), nil
		})
		b.enricher = &service{took: time.Second}
		s := b.hold(many(2000, touched, "d")...)
		for turn := 0; !s.Done; turn++ {
			if turn == 60 {
				b.Fatalf("not done after %d turns", turn)
			}
			begin := time.Now()
			if !s.Wake().Before(begin) {
				begin = s.Wake()
			}
			if s = b.turn(s); time.Since(begin) > b.Config.Index.Timeout-sinkMargin+time.Second {
				b.Errorf("a turn took %s", time.Since(begin))
			}
			for _, l := range b.launched.list[1:] { // the execution may end before the flight does
				if s.Done {
					s = l
				}
			}
		}
		b.Noted(journal.Committed, 2000)
		b.Noted(journal.OutcomeUnknown, 0)
		b.Noted(journal.LeaseLost, 0)
		b.Noted(journal.Released, 0)
		b.inQueue(0)
	})
}

// A service that exceeds its time-out costs released leases, never an unknown outcome.
func TestASlowServiceIsNotAnUnknownOutcome(t *testing.T) {
	stage{cfg: enriched}.play(t, func(b *bench) {
		b.enricher = &service{took: 2 * time.Second}
		s := b.turn(b.hold(titled("a", 1)))
		b.Noted(journal.Released, 1)
		b.Noted(journal.OutcomeUnknown, 0)
		if r := b.Row(doc("a")); r.Owner != "" || r.Refusals != 0 || r.LastError == "" {
			b.Errorf("row %+v, want the lease given back, no refusal, and the reason", r)
		}
		b.requests(0, "the sink gets no document that was not enriched")
		b.enricher = &service{}
		b.lands(s, 5)
		b.shows("a", `{"title":"T a 1","vector":[1,2]}`)
	})
}

// A service that is too slow for a full request gets fewer documents at a time.
func TestASlowServiceGetsFewerDocumentsAtATime(t *testing.T) {
	stage{cfg: enriched}.play(t, func(b *bench) {
		svc := &service{each: 200 * time.Millisecond}
		b.enricher = svc
		began := time.Now()
		b.lands(b.hold(many(300, titled, "d")...), 400)
		if b.Noted(journal.Committed, 300); time.Since(began) > 5*time.Minute {
			b.Errorf("all documents took %s, want at most five times what the service needs", time.Since(began))
		}
		if failed := len(b.Notes.Of(journal.EnrichFailed)); failed > len(svc.calls)/3 {
			b.Errorf("%d of %d requests failed, want few", failed, len(svc.calls))
		}
		b.Noted(journal.OutcomeUnknown, 0)
	})
}

// A service that throttles gets as many documents as it accepts: all flights share the pace, and
// lull claims no documents beyond it.
func TestAServiceThatThrottlesIsAskedLess(t *testing.T) {
	stage{cfg: enriched}.play(t, func(b *bench) {
		room, last := 10.0, time.Now()
		throttled := 0
		svc := &service{}
		svc.one = func(string) string {
			room, last = min(room+time.Since(last).Seconds()*10, 10), time.Now() // 10 documents a second
			if room < 1 {
				throttled++
				return `"error":{"kind":"throttled","reason":"slow down"}`
			}
			room--
			return `"fields":{}`
		}
		b.enricher = svc
		began := time.Now()
		b.lands(b.hold(many(300, titled, "d")...), 200)
		b.Noted(journal.Committed, 300)
		b.Noted(journal.OutcomeUnknown, 0)
		if throttled > 300 || time.Since(began) > 3*time.Minute {
			b.Errorf("%d documents throttled in %s, want fewer than were written", throttled, time.Since(began))
		}
		if r := b.Row(doc("d1")); r.Refusals != 0 {
			b.Errorf("row %+v, want no refusal", r)
		}
		b.Noted(journal.Slowed, 0) // Slowed is a note about the sink, not about the service
	})
}
