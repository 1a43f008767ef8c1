//go:build e2e

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
)

// hook is behind the webhook, until the tests end.
var hook = sync.OnceValues(func() (*usecasetest.Receiver, string) {
	r := usecasetest.NewReceiver()
	return r, httptest.NewServer(r).URL
})

var forgetStack = sync.OnceValues(func() (*ground.Stack, error) {
	_, url := hook()
	return deploy(ground.Settings{Stack: "lull-forget", Hook: url, Archive: true})
})

// The document that is forgotten, content of it and of nothing else, and the document beside it.
const (
	alice, bob = "alice-4711", "bob"
	personal   = "5ecret-content-of-alice"
)

// oblivion forgets a document.
type oblivion struct {
	*testing.T
	*ground.Stack
	collection string
	version    int
}

// event is the next version of a document. A sink refuses it if its date of birth is not a date.
func (o *oblivion) event(id, born string) ground.Event {
	o.version++
	e := ground.Event{
		Collection: o.collection, ID: id, Version: o.version, Data: map[string]any{"title": "harmless", "born": born},
	}
	if id == alice {
		e.Data["title"] = personal
	}
	return e
}

// together is one message in RabbitMQ's envelope.
func together(events ...string) string {
	var all []string
	for _, e := range events {
		all = append(all, `{"basicProperties":{},"data":"`+base64.StdEncoding.EncodeToString([]byte(e))+`"}`)
	}
	return `{"eventSource":"aws:rmq","rmqMessagesByQueue":{"q::/":[` + strings.Join(all, ",") + `]}}`
}

// A document comes by several upstreams, and is in every state that it can be in. It is forgotten,
// and what the command names is dropped. When the command says that nothing remains, no store of
// the stack has the content, but for what docs/forget.md says.
func TestWhatIsForgottenIsInNoStoreOfTheStack(t *testing.T) {
	ground.Long(t)
	s, err := forgetStack()
	ground.Must(t, err)
	o := &oblivion{T: t, Stack: s, collection: "people"}
	began := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	s.Search.Must(t, "PUT", "/"+s.Index(o.collection), map[string]any{"mappings": map[string]any{
		"properties": map[string]any{"born": map[string]any{"type": "date"}},
	}})
	o.write()
	o.Says(t, 0, "events sent in resync run", "replay", "--from", began, "--collection", o.collection)
	o.Idle(t)
	o.die()
	o.schedule()
	o.hold()
	before := o.having()
	for _, want := range []string{
		"bucket archive/", "bucket dead/", "bucket scheduled/", "bucket flights/", "search ", "hook ",
	} {
		if !slices.ContainsFunc(before, func(place string) bool { return strings.HasPrefix(place, want) }) {
			t.Errorf("%sdoes not have the content before it is forgotten: the search finds nothing there", want)
		}
	}
	t.Logf("%d places have the content", len(before))

	done := o.forget()
	if done.Remaining == 0 {
		t.Error("nothing remains, it says, and messages of another document have the content")
	}
	for range 5 {
		if done.Remaining == 0 {
			break
		}
		o.obey(done)
		done = o.forget()
	}
	if done.Remaining > 0 {
		t.Errorf("after all was dropped that was named, %d remain: %+v", done.Remaining, done.Steps)
	}
	o.Idle(t)
	for _, place := range o.having() {
		t.Errorf("it is forgotten, and %s has it", place)
	}

	// The other document is where it was, and a new version of the forgotten one goes nowhere.
	o.Publish(t, o.event(alice, "1990-01-01"), o.event(bob, "1990-01-01"))
	for _, key := range []string{"", "hook"} {
		doc := ground.Key(o.collection, bob)
		if key != "" {
			doc = doc.In(key)
		}
		o.Committed(t, doc, o.version)
	}
	o.Idle(t)
	if got := o.Search.Documents(t, o.Index(o.collection)); len(got) != 1 || got[bob].Fields == nil {
		t.Errorf("the sink holds %v", got)
	}
	if r, _ := hook(); len(r.Documents()) != 1 {
		t.Errorf("the webhook has %v", r.Documents())
	}
}

// write brings both documents into both sinks, by a topic, a bus, and a topic that wraps.
func (o *oblivion) write() {
	o.Helper()
	for _, send := range []func(testing.TB, ...ground.Event){o.Publish, o.Put} {
		send(o, o.event(alice, "1990-01-01"), o.event(bob, "1990-01-01"))
		last := o.version
		for _, row := range []string{"", "hook"} {
			key := ground.Key(o.collection, bob)
			if row != "" {
				key = key.In(row)
			}
			o.Committed(o, key, last)
		}
	}
	o.version++
	o.Wrapped(o, "publishing", strings.Replace(page(alice, o.version, "guide"), "How to renew.", personal, 1))
	o.Committed(o, ground.Key(o.collection, alice), o.version)
	o.Idle(o)
}

// die makes three dead letters. One is of the other document, and its message has the document's
// event. One is of no document, because nothing decodes the message. One is of the document itself,
// and its message has the other document's. An event that a service could not deliver comes again.
func (o *oblivion) die() {
	o.Helper()
	o.Undeliverable(o, o.event(alice, "1990-01-01").Body())
	o.DirectBodies(o, together(`{"subject":"`+alice+`","title":"`+personal))
	o.PublishBodies(o, together(o.event(alice, "1990-01-01").Body(), o.event(bob, "never").Body()))
	o.Committed(o, ground.Key(o.collection, alice), o.version-1)
	o.PublishBodies(o, together(o.event(alice, "never").Body(), o.event(bob, "1990-01-01").Body()))
	o.Committed(o, ground.Key(o.collection, bob), o.version)
	o.Idle(o)
	var list []operate.Letter
	ground.Until(o, "three dead letters", func() (bool, string) {
		o.JSON(o, &list, "dead", "list")
		return len(list) == 3, fmt.Sprintf("%+v", list)
	})
}

// schedule stores events for next week: the document's own, and one that shares its message with
// the other document's.
func (o *oblivion) schedule() {
	o.Helper()
	before, later := o.Counts(o), time.Now().Add(7*24*time.Hour)
	one, two, three := o.event(alice, "1990-01-01"), o.event(alice, "1990-01-01"), o.event(bob, "1990-01-01")
	one.NotBefore, two.NotBefore, three.NotBefore = later, later, later
	o.DirectBodies(o, one.Body(), together(two.Body(), three.Body()))
	o.Counted(o, before, "Scheduled", 3)
	o.Idle(o)
}

// hold leaves a version of both in a flight of each sink.
func (o *oblivion) hold() {
	o.Helper()
	o.PublishBodies(o, together(o.event(alice, "1990-01-01").Body(), o.event(bob, "1990-01-01").Body()))
	o.Pending(o, ground.Key(o.collection, alice), o.version-1)
	o.Pending(o, ground.Key(o.collection, alice).In("hook"), o.version-1)
}

// forget runs the command, which waits for what goes by itself.
func (o *oblivion) forget() (done operate.Forgotten) {
	o.Helper()
	key := string(ground.Key(o.collection, alice))
	a := o.Lull(o, "forget", key, "--yes", "-o", "json")
	if err := json.Unmarshal([]byte(a.Out), &done); err != nil {
		o.Fatalf("forget: exit %d, %v: %s%s", a.Code, err, a.Out, a.Errors)
	}
	if want := map[bool]int{true: 5, false: 0}[done.Remaining > 0]; a.Code != want {
		o.Errorf("forget: exit %d, and %d remain: %s", a.Code, done.Remaining, a.Errors)
	}
	return done
}

var named = regexp.MustCompile("`lull (dead drop|cancel --scheduled) '?([^`']+)'?`|(object) ([^ ,]+)")

// obey does what the answer says.
func (o *oblivion) obey(done operate.Forgotten) {
	o.Helper()
	for _, todo := range named.FindAllStringSubmatch(fmt.Sprint(done.Steps), -1) {
		o.Logf("it names %s", todo[0])
		switch {
		case todo[3] != "":
			o.remove("archive/" + todo[4])
		default:
			o.Lull(o, append(strings.Fields(todo[1]), todo[2])...)
		}
	}
}

// remove deletes all versions of an object, by hand.
func (o *oblivion) remove(key string) {
	o.Helper()
	bucket := aws.String(o.Names.Bucket(ground.AccountID, o.Account.Region))
	in := &s3.ListObjectVersionsInput{Bucket: bucket, Prefix: &key}
	versions, err := o.Files().ListObjectVersions(o.Context(), in)
	ground.Must(o, err)
	for _, v := range versions.Versions {
		in := &s3.DeleteObjectInput{Bucket: bucket, Key: v.Key, VersionId: v.VersionId}
		_, err := o.Files().DeleteObject(o.Context(), in)
		ground.Must(o, err)
	}
}

// having are the places that have the content, but for former versions of objects that S3 expires:
// docs/forget.md names them.
func (o *oblivion) having() (places []string) {
	o.Helper()
	kinds := map[string]int{}
	for _, thing := range o.Stores(o) {
		kind, _, _ := strings.Cut(thing.Place, " ")
		kinds[kind]++
		if !usecasetest.Contains(thing.Data, personal) {
			continue
		}
		if thing.Old && !strings.HasPrefix(thing.Place, "bucket archive/") {
			kinds["former version"]++
			continue
		}
		places = append(places, thing.Place)
	}
	for _, kind := range []string{"table", "bucket", "log", "execution", "search"} {
		if kinds[kind] == 0 {
			o.Errorf("nothing was searched of: %s", kind)
		}
	}
	r, _ := hook()
	for key, document := range r.Documents() {
		if strings.Contains(document, personal) {
			places = append(places, "hook "+key)
		}
	}
	o.Logf("searched: %v", kinds)
	return places
}
