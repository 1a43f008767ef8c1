// SPDX-License-Identifier: Apache-2.0

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

// webhookReceiver starts the receiver of the sink of the kind webhook. It runs until the tests end.
var webhookReceiver = sync.OnceValues(func() (*usecasetest.Receiver, string) {
	r := usecasetest.NewReceiver()
	return r, httptest.NewServer(r).URL
})

var forgetStack = sync.OnceValues(func() (*ground.Stack, error) {
	_, url := webhookReceiver()
	return deploy(ground.Settings{Stack: "lull-forget", Hook: url, Archive: true})
})

// alice is the document that is forgotten, and personal is content that only alice has. bob is
// another document, which must stay.
const (
	alice, bob = "alice-4711", "bob"
	personal   = "5ecret-content-of-alice"
)

// forgetTest is a test that forgets the document alice in a stack.
type forgetTest struct {
	*testing.T
	*ground.Stack
	collection string
	version    int
}

// event returns the next version of a document. The sink refuses the version if born is not a date.
func (o *forgetTest) event(id, born string) ground.Event {
	o.version++
	e := ground.Event{
		Collection: o.collection, ID: id, Version: o.version, Data: map[string]any{"title": "harmless", "born": born},
	}
	if id == alice {
		e.Data["title"] = personal
	}
	return e
}

// inOneMessage returns one message with several events, in the envelope of RabbitMQ.
func inOneMessage(events ...string) string {
	var all []string
	for _, e := range events {
		all = append(all, `{"basicProperties":{},"data":"`+base64.StdEncoding.EncodeToString([]byte(e))+`"}`)
	}
	return `{"eventSource":"aws:rmq","rmqMessagesByQueue":{"q::/":[` + strings.Join(all, ",") + `]}}`
}

// A document arrives from several upstreams, until it has content in every kind of store. Then
// `lull forget` forgets the document, and the test drops the dead letters and objects that the
// command names. When the command says that nothing remains, no store of the stack has the content,
// with the exceptions in docs/forget.md.
func TestWhatIsForgottenIsInNoStoreOfTheStack(t *testing.T) {
	ground.Long(t)
	s, err := forgetStack()
	ground.Must(t, err)
	o := &forgetTest{T: t, Stack: s, collection: "people"}
	began := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	s.Search.Must(t, "PUT", "/"+s.Index(o.collection), map[string]any{"mappings": map[string]any{
		"properties": map[string]any{"born": map[string]any{"type": "date"}},
	}})
	o.write()
	o.Says(t, 0, "events sent in resync run", "replay", "--from", began, "--collection", o.collection)
	o.Idle(t)
	o.makeDeadLetters()
	o.schedule()
	o.hold()
	before := o.placesWithContent()
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
		t.Error("forget says that nothing remains, but messages of another document have the content")
	}
	for range 5 {
		if done.Remaining == 0 {
			break
		}
		o.followAdvice(done)
		done = o.forget()
	}
	if done.Remaining > 0 {
		t.Errorf("after everything that forget names was dropped, %d remain: %+v", done.Remaining, done.Steps)
	}
	o.Idle(t)
	for _, place := range o.placesWithContent() {
		t.Errorf("the document is forgotten, but %s has its content", place)
	}

	// The other document is unchanged, and a new version of the forgotten document is not written.
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
	if r, _ := webhookReceiver(); len(r.Documents()) != 1 {
		t.Errorf("the webhook has %v", r.Documents())
	}
}

// write writes both documents to both sinks. It sends events to a topic, to a bus, and to a topic
// that wraps messages in an envelope.
func (o *forgetTest) write() {
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
	o.Wrapped(o, "publishing", strings.Replace(govukMessage(alice, o.version, "guide"), "How to renew.", personal, 1))
	o.Committed(o, ground.Key(o.collection, alice), o.version)
	o.Idle(o)
}

// makeDeadLetters makes three dead letters. The first is of bob, and its message also has an event
// of alice. The second belongs to no document, because its message cannot be decoded. The third is
// of alice, and its message also has an event of bob. Before that, a message that a service could
// not deliver is returned to the live queue.
func (o *forgetTest) makeDeadLetters() {
	o.Helper()
	o.Undeliverable(o, o.event(alice, "1990-01-01").Body())
	o.DirectBodies(o, inOneMessage(`{"subject":"`+alice+`","title":"`+personal))
	o.PublishBodies(o, inOneMessage(o.event(alice, "1990-01-01").Body(), o.event(bob, "never").Body()))
	o.Committed(o, ground.Key(o.collection, alice), o.version-1)
	o.PublishBodies(o, inOneMessage(o.event(alice, "never").Body(), o.event(bob, "1990-01-01").Body()))
	o.Committed(o, ground.Key(o.collection, bob), o.version)
	o.Idle(o)
	var list []operate.Letter
	ground.Until(o, "three dead letters", func() (bool, string) {
		o.JSON(o, &list, "dead", "list")
		return len(list) == 3, fmt.Sprintf("%+v", list)
	})
}

// schedule stores events for next week. One message has an event of alice, and another message has
// events of both documents.
func (o *forgetTest) schedule() {
	o.Helper()
	before, later := o.Counts(o), time.Now().Add(7*24*time.Hour)
	one, two, three := o.event(alice, "1990-01-01"), o.event(alice, "1990-01-01"), o.event(bob, "1990-01-01")
	one.NotBefore, two.NotBefore, three.NotBefore = later, later, later
	o.DirectBodies(o, one.Body(), inOneMessage(two.Body(), three.Body()))
	o.Counted(o, before, "Scheduled", 3)
	o.Idle(o)
}

// hold leaves a version of both documents in a flight of each sink.
func (o *forgetTest) hold() {
	o.Helper()
	o.PublishBodies(o, inOneMessage(o.event(alice, "1990-01-01").Body(), o.event(bob, "1990-01-01").Body()))
	o.Pending(o, ground.Key(o.collection, alice), o.version-1)
	o.Pending(o, ground.Key(o.collection, alice).In("hook"), o.version-1)
}

// forget runs the command `lull forget`. The command waits for content that lull deletes without an
// operator.
func (o *forgetTest) forget() (done operate.Forgotten) {
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

// followAdvice does what the answer of the command advises.
func (o *forgetTest) followAdvice(done operate.Forgotten) {
	o.Helper()
	for _, todo := range named.FindAllStringSubmatch(fmt.Sprint(done.Steps), -1) {
		o.Logf("the command names %s", todo[0])
		switch {
		case todo[3] != "":
			o.remove("archive/" + todo[4])
		default:
			o.Lull(o, append(strings.Fields(todo[1]), todo[2])...)
		}
	}
}

// remove deletes all versions of an object, as an operator would.
func (o *forgetTest) remove(key string) {
	o.Helper()
	bucket := aws.String(o.Names.Bucket(o.AccountID, o.Account.Region))
	in := &s3.ListObjectVersionsInput{Bucket: bucket, Prefix: &key}
	versions, err := o.Files().ListObjectVersions(o.Context(), in)
	ground.Must(o, err)
	for _, v := range versions.Versions {
		in := &s3.DeleteObjectInput{Bucket: bucket, Key: v.Key, VersionId: v.VersionId}
		_, err := o.Files().DeleteObject(o.Context(), in)
		ground.Must(o, err)
	}
}

// placesWithContent returns the places that have the content. It ignores former versions of objects
// that S3 expires, which docs/forget.md names.
func (o *forgetTest) placesWithContent() (places []string) {
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
			o.Errorf("the test searched no store of the kind: %s", kind)
		}
	}
	r, _ := webhookReceiver()
	for key, document := range r.Documents() {
		if strings.Contains(document, personal) {
			places = append(places, "hook "+key)
		}
	}
	o.Logf("searched: %v", kinds)
	return places
}
