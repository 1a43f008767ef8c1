// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/deadletter/deadlettertest"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/seam/schedule"
	"github.com/lullhq/lull/internal/seam/schedule/scheduletest"
	"github.com/lullhq/lull/internal/shard"
)

// bucket creates a bucket at the emulator. The test does not delete the bucket: an emulator forgets
// it when it stops.
func bucket(t *testing.T, cfg aws.Config) *s3.Bucket {
	t.Helper()
	api := sdk.NewFromConfig(client.Plain(cfg), func(o *sdk.Options) { o.UsePathStyle = true })
	name := awstest.Name(t)
	if _, err := api.CreateBucket(awstest.Context(t), &sdk.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatalf("create bucket: %v", err)
	}
	return s3.New(cfg, name)
}

func TestDeadLettersKeepTheirPromises(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	store := NewLetters(New(cfg, create(t, cfg)), s3.NewBodies(bucket(t, cfg), s3.DeadPrefix))
	deadlettertest.Run(t, func(*testing.T) deadletter.Store { return store })
}

func TestScheduledEventsKeepTheirPromises(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	store := NewSchedule(New(cfg, create(t, cfg)), s3.NewBodies(bucket(t, cfg), s3.SchedulePrefix))
	scheduletest.Run(t, func(*testing.T) schedule.Store { return store })
}

// query is the part of a Query request that the scripted index reads.
type query struct {
	IndexName                 string
	Limit                     int
	ExpressionAttributeValues map[string]map[string]string
}

// index answers queries from the sort keys of each partition. A page has at most three items, and
// some pages are empty, as DynamoDB allows.
type index struct {
	mu      sync.Mutex
	keys    map[string][]string
	queries int
}

func (x *index) answer(t *testing.T, c awstest.Call) awstest.Reply {
	var q query
	c.Into(t, &q)
	if q.IndexName != IndexName || q.Limit < 1 {
		t.Errorf("got %s of %s", c.Operation, c.Body)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queries++
	var items []string
	more := false
	for _, at := range x.keys[q.ExpressionAttributeValues[":bucket"]["S"]] {
		if at < q.ExpressionAttributeValues[":from"]["S"] || at > q.ExpressionAttributeValues[":to"]["S"] {
			continue
		}
		if len(items) == min(3, q.Limit) {
			more = true
			break
		}
		items = append(items, fmt.Sprintf(`{"doc":{"S":"!dead#%s"},"at":{"S":%q},"died":{"N":"1"}}`, at[len(at)-4:],
			at))
	}
	body := `{"Items":[` + strings.Join(items, ",") + `]`
	if more {
		body += `,"LastEvaluatedKey":{"doc":{"S":"x"}}`
	}
	return awstest.Reply{Body: body + `}`}
}

func TestTheIndexIsMergedInOrderOverItsPartitions(t *testing.T) {
	t.Parallel()
	x := &index{keys: map[string][]string{}}
	const n = 100
	for i := range n {
		id := fmt.Sprintf("%04d", i)
		p := dead.partition(uint32(i*i) % 7) // the partitions have different sizes, and one is empty
		x.keys[p] = append(x.keys[p], fmt.Sprintf("%020d#%s", i/3, id))
	}
	table := New(awstest.JSON(t, func(c awstest.Call) awstest.Reply { return x.answer(t, c) }), "shards")
	for _, limit := range []int{1, 7, 99, 100, 101, 1000} {
		var ids []string
		pages := 0
		for cursor := ""; ; {
			facts, next, err := NewLetters(table, nil).List(awstest.Context(t), deadletter.Filter{}, cursor, limit)
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			pages++
			if len(facts) > limit {
				t.Errorf("limit %d: got a page of %d dead letters", limit, len(facts))
			}
			for _, f := range facts {
				ids = append(ids, f.ID)
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		if len(ids) != n {
			t.Fatalf("limit %d: got %d dead letters, want %d", limit, len(ids), n)
		}
		for i, id := range ids {
			if want := fmt.Sprintf("%04d", i); id != want {
				t.Fatalf("limit %d: dead letter %d is %s, want %s", limit, i, id, want)
			}
		}
		if want := (n + limit - 1) / limit; pages != want {
			t.Errorf("limit %d: got %d pages, want %d", limit, pages, want)
		}
	}
}

func TestAFilterThatMatchesNothingComesBack(t *testing.T) {
	t.Parallel()
	x := &index{keys: map[string][]string{}}
	for i := range 500 {
		p := dead.partition(uint32(i) % buckets)
		x.keys[p] = append(x.keys[p], fmt.Sprintf("%020d#%04d", i, i))
	}
	table := New(awstest.JSON(t, func(c awstest.Call) awstest.Reply { return x.answer(t, c) }), "shards")
	calls := 0
	for cursor := ""; ; calls++ {
		facts, next, err := NewLetters(table, nil).List(awstest.Context(t),
			deadletter.Filter{Reason: deadletter.Cancelled}, cursor, 5)
		if err != nil || len(facts) != 0 {
			t.Fatalf("got %v, %v", facts, err)
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if calls != 500/(5*lookFactor)-1 {
		t.Errorf("got %d calls with a cursor, want one after each %d dead letters except the last ones", calls, 5*lookFactor)
	}
}

// Three events are due. The message of the first event is gone, the second message has a newer
// schema, and the third message can be read.
func TestAScheduledEventThatCannotBeReadSaysSo(t *testing.T) {
	t.Parallel()
	const due = `{"Items":[{"doc":{"S":"!sched#gone"},"at":{"S":"1"},"not_before":{"N":"1"}},` +
		`{"doc":{"S":"!sched#newer"},"at":{"S":"2"},"not_before":{"N":"1"}},` +
		`{"doc":{"S":"!sched#there"},"at":{"S":"3"},"not_before":{"N":"1"}}]}`
	var answered atomic.Bool
	table := New(awstest.JSON(t, func(awstest.Call) awstest.Reply {
		if answered.Swap(true) {
			return awstest.Reply{Body: `{"Items":[]}`}
		}
		return awstest.Reply{Body: due}
	}), "shards")
	bodies := &counted{bodies: map[string]string{"there": "message"}, broken: map[string]error{
		"newer": backoff.Permanent(errors.New("schema 9")),
	}}
	items, _, err := NewSchedule(table, bodies).Due(awstest.Context(t), time.UnixMilli(2), "", 10)
	if err != nil || len(items) != 3 {
		t.Fatalf("%d items, %v", len(items), err)
	}
	for _, it := range items {
		if there := it.ID == "there"; (it.Unread == nil) != there || (it.Body != "") != there {
			t.Errorf("%s: body %q, unread: %v", it.ID, it.Body, it.Unread)
		}
	}
	bodies.broken["there"] = errors.New("try again")
	answered.Store(false)
	if _, _, err := NewSchedule(table, bodies).Due(awstest.Context(t), time.UnixMilli(2), "", 10); err == nil {
		t.Error("Due returned no error, although the message may be readable later")
	}
}

func TestARowOfADocumentNeverCarriesTheIndex(t *testing.T) {
	t.Parallel()
	for _, a := range attrs {
		if string(a) == IndexPartition || string(a) == IndexSort || string(a) == PartitionKey {
			t.Errorf("a row of a document has the attribute %s, which is a key of the table or its index", a)
		}
	}
}

// counted keeps bodies in memory and counts the calls of Put.
type counted struct {
	mu       sync.Mutex
	bodies   map[string]string
	broken   map[string]error // the error that Get returns, by id
	puts     int
	onDelete func() // runs before the next Delete; nil if nothing shall run
}

func (c *counted) Put(_ context.Context, id, body string, _ map[string]queue.Attribute) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.puts++
	c.bodies[id] = body
	return nil
}

func (c *counted) Get(_ context.Context, id string) (string, map[string]queue.Attribute, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.broken[id]; err != nil {
		return "", nil, false, err
	}
	body, ok := c.bodies[id]
	return body, nil, ok, nil
}

func (c *counted) Delete(_ context.Context, id string) error {
	if f := c.onDelete; f != nil {
		c.onDelete = nil
		f()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.bodies, id)
	return nil
}

func TestAMessageOfManyDeadEventsIsStoredOnce(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	bodies := &counted{bodies: map[string]string{}}
	table := New(cfg, create(t, cfg))
	store := NewLetters(table, bodies)
	var letters []deadletter.Letter
	for i := range 40 {
		l := deadletter.Letter{Body: "one message", Facts: deadletter.Facts{
			ID: fmt.Sprint("id", i), Event: i, Reason: deadletter.RejectedBySink, Died: time.UnixMilli(1),
			State: deadletter.Parked,
		}}
		letters = append(letters, l)
		for range 2 {
			if _, err := store.Park(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
	}
	if bodies.puts != 1 || len(bodies.bodies) != 1 {
		t.Errorf("Park made %d puts into %d objects, want one put and one object", bodies.puts, len(bodies.bodies))
	}
	_, before, _ := table.Counts()
	if _, err := store.Park(t.Context(), letters[0]); err != nil {
		t.Fatal(err)
	}
	if _, after, _ := table.Counts(); after != before {
		t.Errorf("a repeated Park made %d writes, want none", after-before)
	}
	for _, l := range letters {
		if len(bodies.bodies) != 1 {
			t.Fatalf("there are %d objects before the drop of dead letter %s, want one", len(bodies.bodies), l.ID)
		}
		if err := store.Drop(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	if len(bodies.bodies) != 0 {
		t.Errorf("there are %d objects after the last dead letter was dropped, want none", len(bodies.bodies))
	}
	hash := deadletter.Hash("one message", nil)
	if it, err := store.table.get(t.Context(), message.doc(hash)); err != nil || it != nil {
		t.Errorf("the table has the message item %v, error %v; want neither", it, err)
	}
}

// The last dead letter of a message is dropped. Before its object is deleted, another dead letter
// of that message is parked.
func TestWhoParksWhileTheMessageGoesKeepsIt(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	bodies := &counted{bodies: map[string]string{}}
	store := NewLetters(New(cfg, create(t, cfg)), bodies)
	park := func(id string) {
		l := deadletter.Letter{Body: "message", Facts: deadletter.Facts{ID: id, Died: time.UnixMilli(1)}}
		if _, err := store.Park(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	park("first")
	bodies.onDelete = func() { park("second") }
	if err := store.Drop(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	got, ok, err := store.Get(t.Context(), "second")
	if err != nil || !ok || got.Body != "message" || len(bodies.bodies) != 1 {
		t.Errorf("got %q, %v, %v, %d objects, want the message in one", got.Body, ok, err, len(bodies.bodies))
	}
}

// A caller that drops a dead letter may be killed between any two calls. Afterwards, in one case,
// the dead letter is only dropped again. In the other case, the dead letter is parked again first.
func TestDroppingThatEndedHalfWayGoesOn(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	for _, parkAgain := range []bool{false, true} {
		for calls := 1; calls <= 3; calls++ {
			bodies := &counted{bodies: map[string]string{}}
			store := NewLetters(New(cfg, create(t, cfg)), bodies)
			l := deadletter.Letter{Body: "message", Facts: deadletter.Facts{
				ID: "a", Reason: deadletter.RejectedBySink, Died: time.UnixMilli(1), State: deadletter.Parked,
			}}
			park := func(want deadletter.Parking) {
				t.Helper()
				if got, err := store.Park(t.Context(), l); err != nil || got != want {
					t.Fatalf("park: %s, %v, want %s", got, err, want)
				}
			}
			park(deadletter.Fresh)
			it, err := store.table.get(t.Context(), dead.doc("a"))
			if err != nil {
				t.Fatal(err)
			}
			r := refOf(fields(it))
			// These writes repeat the calls that release made before the kill.
			for _, w := range []shard.Write{
				{Doc: r.item(), Update: []shard.Action{setText(string(refAttr("a")), "")}}, {Doc: r.item(), Drop: true},
			}[:min(calls, 2)] {
				if _, err := store.table.change(t.Context(), "half a drop", w); err != nil {
					t.Fatal(err)
				}
			}
			if calls == 3 {
				_ = bodies.Delete(t.Context(), r.object)
			}
			if parkAgain {
				park(deadletter.Again)
				if got, ok, err := store.Get(t.Context(), "a"); err != nil || !ok || got.Body != l.Body {
					t.Fatalf("after %d calls of a drop and a second Park, Get returned %q, %v, %v", calls, got.Body, ok, err)
				}
			}
			if err := store.Drop(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			if parkAgain && calls == 2 {
				continue // the object of the interrupted drop remains
			}
			if _, ok, _ := store.Get(t.Context(), "a"); ok || len(bodies.bodies) != 0 {
				t.Errorf("after %d calls of a drop and a second drop: the dead letter exists: %v; there are %d objects", calls, ok, len(bodies.bodies))
			}
		}
	}
}

// Earlier versions of lull stored one message for each dead letter, under the id of the dead letter
// and without a hash.
func TestADeadLetterOfAnEarlierVersionKeepsItsMessage(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	bodies := &counted{bodies: map[string]string{}}
	store := NewLetters(New(cfg, create(t, cfg)), bodies)
	died := time.UnixMilli(5)
	_, err := store.table.change(t.Context(), "park", shard.Write{Doc: dead.doc("old"), Update: []shard.Action{
		setText(IndexPartition, dead.bucket("old")), setText(IndexSort, sortKey(died, "old")),
		setText("reason", "rejected"), setText("about", "pages#1"), setText("message", "m-1"),
		setTime("died", died), setText("state", "redriven"), count("redrives"),
	}})
	if err = errors.Join(err, bodies.Put(t.Context(), "old", "its message", nil)); err != nil {
		t.Fatal(err)
	}
	got, ok, err := store.Get(t.Context(), "old")
	if err != nil || !ok || got.Body != "its message" || got.Doc != "pages#1" || got.Hash != "" {
		t.Fatalf("got %+v, %v, %v", got, ok, err)
	}
	got.Body = "another message"
	if parking, err := store.Park(t.Context(), got); err != nil || parking != deadletter.Again {
		t.Fatalf("park: %s, %v", parking, err)
	}
	got, _, err = store.Get(t.Context(), "old")
	if err != nil || got.Body != "its message" || got.State != deadletter.Parked || got.Redrives != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if list, _, err := store.List(t.Context(), deadletter.Filter{}, "", 10); err != nil || len(list) != 1 {
		t.Errorf("listed %v, %v", list, err)
	}
	if err := store.Drop(t.Context(), "old"); err != nil || len(bodies.bodies) != 0 {
		t.Errorf("Drop returned %v, and %d messages remain; want none", err, len(bodies.bodies))
	}
}

// A count transfers no item and reads every partition page by page. The count ends as soon as the
// number reaches the limit.
func TestWhatIsParkedIsCountedInTheIndex(t *testing.T) {
	t.Parallel()
	const inPage, pages = 1000, 3 // items of a page, and pages of each partition
	var mu sync.Mutex
	asked := map[string]int{}
	table := New(awstest.JSON(t, func(c awstest.Call) awstest.Reply {
		var q struct {
			query
			Select, FilterExpression string
			ExclusiveStartKey        map[string]map[string]string
		}
		c.Into(t, &q)
		if q.IndexName != IndexName || q.Select != "COUNT" || q.FilterExpression == "" ||
			q.ExpressionAttributeValues[":forgotten"]["N"] != "1777888800000000" {
			t.Errorf("got %s of %s", c.Operation, c.Body)
		}
		mu.Lock()
		defer mu.Unlock()
		bucket := q.ExpressionAttributeValues[":bucket"]["S"]
		if at := q.ExclusiveStartKey["at"]["N"]; at != "" && at != fmt.Sprint(asked[bucket]) {
			t.Errorf("partition %s continues after page %s, want page %d", bucket, at, asked[bucket])
		}
		if asked[bucket]++; asked[bucket] == pages {
			return awstest.Reply{Body: fmt.Sprintf(`{"Count":%d,"ScannedCount":%[1]d}`, inPage)}
		}
		return awstest.Reply{Body: fmt.Sprintf(`{"Count":%d,"ScannedCount":%[1]d,"LastEvaluatedKey":{"at":{"N":"%d"}}}`,
			inPage, asked[bucket])}
	}), "shards")
	for _, test := range []struct {
		atMost, want, queries int
		more                  bool
	}{
		{1_000_000, buckets * pages * inPage, buckets * pages, false},
		{buckets * pages * inPage, buckets * pages * inPage, buckets * pages, false},
		{2500, 3000, 3, true},
		{1, 1000, 1, true},
	} {
		clear(asked)
		n, more, err := NewLetters(table, nil).Parked(awstest.Context(t), time.Unix(1_777_888_800, 0), test.atMost)
		queries := 0
		for _, n := range asked {
			queries += n
		}
		if n != test.want || more != test.more || queries != test.queries || err != nil {
			t.Errorf("with the limit %d: got %d, more %v, error %v, after %d queries; want %+v", test.atMost, n, more, err, queries, test)
		}
	}
}
