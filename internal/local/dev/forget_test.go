// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oklog/ulid/v2"
	bolt "go.etcd.io/bbolt"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/memorysink"
	"github.com/lullhq/lull/sink/webhook"
	"github.com/lullhq/lull/source"
)

// The states in which a document can be when an operator forgets it.
const (
	isWritten = 1 << iota // the document is in both sinks, and in the archive, from which it was replayed
	// an event of the document is scheduled, and an event of another document in the same message
	isScheduled
	isDead      // the document has a dead letter, whose message also has an event of another document
	isParked    // another document has a dead letter, whose message also has an event of this document
	isUndecoded // there is a dead letter without a key, because no source can decode the message
	isHeld      // the document is in a flight that waits
	everyState  = 1<<iota - 1
)

// secret is content of the forgotten document. No other document contains the secret.
const secret = "5ecret-content-of-alice"

// A document may be in any combination of states. If forget says that nothing remains, no store of
// the stack may contain the document's content, neither in memory nor in the data folder.
func TestWhatIsForgottenIsInNoStore(t *testing.T) {
	for _, name := range source.Kinds() {
		kind, _ := source.Lookup(name)
		// messages of this kind contain only references to content
		if kind.Example.Write == nil || kind.Example.Change.Bucket != "" {
			continue
		}
		for state := 1; state <= everyState; state++ {
			if testing.Short() && state != everyState && state&(state-1) != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%06b", name, state), func(t *testing.T) {
				t.Parallel()
				// The server is outside of the synctest bubble, because virtual time stands still
				// while a goroutine in the bubble waits for the network.
				hook := usecasetest.NewReceiver()
				server := httptest.NewUnstartedServer(hook)
				server.Config.SetKeepAlivesEnabled(false)
				server.Start()
				defer server.Close()
				synctest.Test(t, func(t *testing.T) { forgetting(t, kind, state, hook, server.URL) })
			})
		}
	}
}

// oblivion is a stack with a document that the test forgets.
type oblivion struct {
	*testing.T
	e      *Engine
	api    operate.API
	kind   source.Kind
	search *memorysink.Sink
	hook   *usecasetest.Receiver
	n      uint32 // the last version that was sent
}

func forgetting(t *testing.T, kind source.Kind, state int, hook *usecasetest.Receiver, url string) {
	cfg, versions := config.Default(), true
	cfg.Sinks = map[string]config.Sink{
		"hook": {Kind: "webhook", URL: url, Versions: &versions}, "search": {Kind: "memory", Versions: &versions},
	}
	cfg.Collections["content"] = config.Collection{Sinks: []string{"search", "hook"}}
	cfg.DefaultCollection, cfg.DefaultSink = "content", "search"
	cfg.Sources, cfg.DefaultSource = map[string]config.Source{"up": kind.ExampleSettings()}, "up"
	cfg.Debounce.Quiet, cfg.Debounce.MaxWait, cfg.Debounce.MinInterval = 20*time.Second, time.Minute, 0
	cfg.Archive.Keep = 14 * 24 * time.Hour
	cfg.Complete()
	dir := t.TempDir()
	folder := usecasetest.Must(OpenFolder(dir))(t)
	g := &oblivion{
		T: t, kind: kind, search: memorysink.New(clock.System{}, memorysink.Settings{Versions: true}), hook: hook,
	}
	requests := usecasetest.Must(webhook.New(webhook.Options{URL: url, Versions: true}))(t)
	g.e = usecasetest.Must(New(Options{
		Config: &cfg, Clock: clock.System{}, Folder: folder,
		Sinks: map[string]sink.Sink{"search": g.search, "hook": requests},
	}))(t)
	usecasetest.OK(t, g.e.Load(t.Context()))
	g.api = g.e.Operator(nil).API()
	ctx, cancel := context.WithCancel(t.Context())
	g.e.Start(ctx)
	g.bring(state)
	if len(g.having()) == 0 {
		t.Error("no store has the content before it is forgotten: the search finds nothing")
	}
	done := g.forget()
	// A held event is newer than a scheduled one, and makes the scheduled event of the other
	// document outdated.
	shared := state&(isDead|isParked|isUndecoded) != 0 || state&(isScheduled|isHeld) == isScheduled
	if shared != (done.Remaining > 0) {
		t.Errorf("%d remain: %+v", done.Remaining, done.Steps)
	}
	g.obey()
	if done = g.forget(); done.Remaining > 0 {
		t.Errorf("after all was dropped that was named, %d remain: %+v", done.Remaining, done.Steps)
	}
	usecasetest.OK(t, g.e.Settle(ctx))
	cancel()
	g.e.Stop()
	g.e.Save()
	usecasetest.OK(t, folder.Close())
	for _, place := range append(g.having(), inFolder(t, filepath.Join(dir, stateFile))...) {
		t.Errorf("it is forgotten, and %s has it", place)
	}
	if state&(isWritten|isHeld) != 0 {
		if _, there, err := g.search.Get(t.Context(), "content#bob"); err != nil || !there {
			t.Errorf("the sink lost the other document: %v", err)
		}
		if hook.Documents()["content#bob"] == "" {
			t.Error("the webhook lost the other document")
		}
	}
}

// event returns a new version of a document in the form in which the upstream writes it.
func (g *oblivion) event(id string) string {
	g.Helper()
	g.n++
	settings := g.kind.ExampleSettings().Complete()
	change := source.Change{
		ID: id, Version: source.NumberedVersion(settings.Class, 9+g.n), Op: event.Put, Data: `{"title":"harmless"}`,
		Time: time.Now().Truncate(time.Second),
	}
	if id == "alice" {
		change.Data = `{"title":"` + secret + `"}`
	}
	return usecasetest.Must(g.kind.Example.Write(settings, change))(g)
}

// message returns a message with an event of each document, in RabbitMQ's envelope.
func (g *oblivion) message(ids ...string) string {
	g.Helper()
	var all []string
	for _, id := range ids {
		all = append(all, `{"basicProperties":{},"data":"`+base64.StdEncoding.EncodeToString([]byte(g.event(id)))+`"}`)
	}
	return `{"eventSource":"aws:rmq","rmqMessagesByQueue":{"q::/":[` + strings.Join(all, ",") + `]}}`
}

// send publishes a message to both sinks.
func (g *oblivion) send(body string) {
	g.Helper()
	out := operate.Publication{Messages: []queue.Outgoing{{Body: body}}, Unchecked: true}
	if done := usecasetest.Must(g.api.Publish(g.Context(), out))(g); len(done.Refused) > 0 {
		g.Fatalf("refused: %+v", done.Refused)
	}
	time.Sleep(8 * time.Second)
	synctest.Wait()
}

// bring brings the document "alice" into the states. Her messages also contain events of the
// document "bob".
func (g *oblivion) bring(state int) {
	g.Helper()
	cancel := func(id string, scheduled bool) {
		g.Helper()
		order := operate.Cancellation{Key: usecasetest.Doc(id), Scheduled: scheduled, By: "ann"}
		usecasetest.Must(g.api.Cancel(g.Context(), order))(g)
	}
	if state&isWritten != 0 {
		g.send(g.event("alice"))
		g.send(g.event("bob"))
		usecasetest.OK(g, g.e.Settle(g.Context()))
		replay := operate.ReplayOrder{
			ArchiveRange: operate.ArchiveRange{From: time.Now().Add(-time.Hour), To: time.Now()},
			Run:          ulid.MustNew(ulid.Now(), rand.Reader).String(), By: "ann",
		}
		sent := 0
		for first := true; first || replay.Cursor != ""; first = false {
			step := usecasetest.Must(g.api.Replay(g.Context(), replay))(g)
			sent, replay.Cursor = sent+step.Sent, step.Next
		}
		if sent == 0 {
			g.Error("nothing was replayed")
		}
		usecasetest.OK(g, g.e.Settle(g.Context()))
	}
	for _, dead := range []struct {
		state int
		ids   []string
	}{{isDead, []string{"alice", "bob"}}, {isParked, []string{"bob"}}} {
		if state&dead.state == 0 {
			continue
		}
		g.send(g.message("alice", "bob"))
		for _, id := range dead.ids {
			cancel(id, false)
		}
		usecasetest.OK(g, g.e.Settle(g.Context()))
	}
	if state&isUndecoded != 0 {
		broken := `{"subject":"alice","title":"` + secret
		g.send(`{"eventSource":"aws:rmq","rmqMessagesByQueue":{"q::/":[{"basicProperties":{},"data":"` +
			base64.StdEncoding.EncodeToString([]byte(broken)) + `"}]}}`)
		usecasetest.OK(g, g.e.Settle(g.Context()))
	}
	if state&isScheduled != 0 {
		body := g.message("alice", "bob")
		for _, name := range []string{"search", "hook"} {
			for i, r := range g.e.sources.At(name).Decode(queue.Message{Body: body, Sent: time.Now()}) {
				usecasetest.OK(g, g.e.Schedule.Put(g.Context(), schedule.Item{
					ID: fmt.Sprint(name, i), Doc: r.Event.Doc, Key: r.Event.Key,
					NotBefore: time.Now().Add(24 * time.Hour),
					Sink:      name, Lane: flight.Live, FirstSent: time.Now(), Body: body,
				}))
			}
		}
	}
	if state&isHeld != 0 {
		g.send(g.message("alice", "bob"))
		if len(g.flights()) == 0 {
			g.Error("nothing is held")
		}
	}
}

// once runs the job, without patience.
func (g *oblivion) once() operate.Forgotten {
	g.Helper()
	f := operate.Forgetting{Key: "content#alice", By: "ann", Clock: clock.System{}}
	r := job.Runner{Store: g.api.JobStore(), Clock: f.Clock, By: f.By}
	return usecasetest.Must(f.Forget(g.Context(), r, g.api))(g)
}

// forget repeats the request until no more copies disappear by themselves, as the command does.
// Whenever the answer says that nothing remains, no store may have the content.
func (g *oblivion) forget() (done operate.Forgotten) {
	g.Helper()
	for range 10 {
		done = g.once()
		if left := g.having(); done.Remaining == 0 && len(left) > 0 {
			g.Errorf("nothing remains, it says, and these have it: %q", left)
		}
		if done.Waits == 0 {
			return done
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
	}
	g.Errorf("it goes on waiting: %+v", done.Steps)
	return done
}

var named = regexp.MustCompile("(?:`lull )?(dead drop|cancel --scheduled|in object)[: ]'?([^`', ]+)'?")

// obey runs the commands that the answer names, until the answer names no command.
func (g *oblivion) obey() {
	g.Helper()
	for range 10 {
		done := g.once()
		todo := named.FindAllStringSubmatch(fmt.Sprint(done.Steps), -1)
		for _, todo := range todo {
			switch todo[1] {
			case "in object":
				usecasetest.OK(g, g.e.Archive.Remove(g.Context(), archive.Name(todo[2])))
			case "dead drop":
				one := operate.LetterOrder{LetterFilter: operate.LetterFilter{ID: todo[2]}, By: "ann"}
				usecasetest.Must(g.api.Drop(g.Context(), one))(g)
			default:
				one := operate.Cancellation{Key: shard.DocID(todo[2]), Scheduled: true, By: "ann"}
				// the first cancellation may have cancelled the event for both sinks
				_, _ = g.api.Cancel(g.Context(), one)
			}
		}
		if len(todo) == 0 {
			return
		}
	}
	g.Error("what is named does not become less")
}

func (g *oblivion) flights() []flight.Stored {
	list, _, err := g.e.Flights.List(g.Context(), "", 1000)
	usecasetest.OK(g, err)
	return list
}

// having returns the stores in memory that contain the secret.
func (g *oblivion) having() (places []string) {
	g.Helper()
	look := func(place string, m queue.Message) {
		parts := [][]byte{[]byte(m.Body)}
		for _, a := range m.Attributes {
			parts = append(parts, []byte(a.String), a.Binary)
		}
		if slices.ContainsFunc(parts, func(part []byte) bool { return usecasetest.Contains(part, secret) }) {
			places = append(places, place)
		}
	}
	for row := range g.e.Shards.All() {
		look("the row "+string(row.Doc), queue.Message{Body: fmt.Sprintf("%+v", row)})
	}
	facts, _, err := g.e.Letters.List(g.Context(), deadletter.Filter{}, "", 1000)
	usecasetest.OK(g, err)
	for _, f := range facts {
		l, _, err := g.e.Letters.Get(g.Context(), f.ID)
		usecasetest.OK(g, err)
		look("dead letter "+f.ID+" of "+string(f.Doc), queue.Message{Body: l.Body, Attributes: l.Attributes})
		look("the facts of dead letter "+f.ID, queue.Message{Body: fmt.Sprintf("%+v", f)})
	}
	items, _, err := g.e.Schedule.List(g.Context(), "", "", 1000)
	usecasetest.OK(g, err)
	for _, it := range items {
		it, _, err := g.e.Schedule.Get(g.Context(), it.ID)
		usecasetest.OK(g, err)
		look("the scheduled event of "+string(it.Doc), queue.Message{Body: it.Body, Attributes: it.Attributes})
	}
	for _, f := range g.flights() {
		m, err := g.e.Flights.Get(g.Context(), f.ID)
		usecasetest.OK(g, err)
		for _, r := range m.Records {
			look("flight "+string(f.ID), r.Message)
		}
	}
	objects, _, err := g.e.Archive.List(g.Context(), "", "~", 1000)
	usecasetest.OK(g, err)
	for _, o := range objects {
		_, msgs, err := archive.Read(g.Context(), g.e.Archive, o.Name)
		usecasetest.OK(g, err)
		for _, m := range msgs {
			look("the archive's object "+string(o.Name), m)
		}
	}
	usecasetest.OK(g, g.search.All(g.Context(), func(d sink.Stored) error {
		look("the sink", queue.Message{Body: string(d.Document)})
		return nil
	}))
	for key, document := range g.hook.Documents() {
		look("the webhook's "+key, queue.Message{Body: document})
	}
	return places
}

// inFolder returns the entries of a data folder that contain the secret.
func inFolder(t *testing.T, path string) (places []string) {
	t.Helper()
	db := usecasetest.Must(bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true}))(t)
	defer db.Close()
	entries := 0
	usecasetest.OK(t, db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(room []byte, b *bolt.Bucket) error {
			return b.ForEach(func(key, value []byte) error {
				if entries++; usecasetest.Contains(value, secret) {
					places = append(places, fmt.Sprintf("the data folder's %s %s", room, key))
				}
				return nil
			})
		})
	}))
	if entries == 0 {
		t.Error("the data folder is empty")
	}
	return places
}

// The row of a document records the message group of its message, so that an operator can forget
// all documents of a tenant.
func TestADocumentIsFoundByItsMessageGroup(t *testing.T) {
	stage{}.play(t, func(s *scene) {
		for id, group := range map[string]string{"a": "one", "b": "two", "c": ""} {
			m := put(0, id, 1)
			if group != "" {
				m.Attributes = map[string]queue.Attribute{queue.AttrGroup: queue.Text(group)}
			}
			s.send(m)
		}
		s.settle()
		s.send(put(0, "a", 2)) // a message without a group: the row keeps the earlier group
		s.settle()
		all, err := operate.Group(s.ctx, s.e.Operator(nil).API(), "one")
		if err != nil || fmt.Sprint(all.Keys) != "[content#a]" || len(all.Letters) > 0 {
			t.Errorf("got %+v, %v", all, err)
		}
	})
}
