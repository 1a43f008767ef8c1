package dynamodb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/aws/s3"
	"github.com/lullhq/lull/internal/deadletter"
	"github.com/lullhq/lull/internal/deadletter/deadlettertest"
	"github.com/lullhq/lull/internal/schedule"
	"github.com/lullhq/lull/internal/schedule/scheduletest"
)

// bucket makes a bucket at the emulator. Emulators forget it when they stop.
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

// query is what a scripted index looks at.
type query struct {
	IndexName                 string
	Limit                     int
	ExpressionAttributeValues map[string]map[string]string
}

// index answers queries from sort keys per partition, at most three at a time and some pages empty,
// as DynamoDB may.
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
	body := `{"Items":[` + string(bytes.Join(raw(items), []byte{','})) + `]`
	if more {
		body += `,"LastEvaluatedKey":{"doc":{"S":"x"}}`
	}
	return awstest.Reply{Body: body + `}`}
}

func raw(items []string) [][]byte {
	out := make([][]byte, len(items))
	for i := range items {
		out[i] = json.RawMessage(items[i])
	}
	return out
}

func TestTheIndexIsMergedInOrderOverItsPartitions(t *testing.T) {
	t.Parallel()
	x := &index{keys: map[string][]string{}}
	const n = 100
	for i := range n {
		id := fmt.Sprintf("%04d", i)
		p := dead.partition(uint32(i*i) % 7) // uneven, and one partition is empty
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
				t.Errorf("limit %d: got %d", limit, len(facts))
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
		t.Errorf("got %d calls with a cursor, want one behind each %d dead letters but the last", calls, 5*lookFactor)
	}
}

func TestARowOfADocumentNeverCarriesTheIndex(t *testing.T) {
	t.Parallel()
	for _, a := range attrs {
		if string(a) == IndexPartition || string(a) == IndexSort || string(a) == PartitionKey {
			t.Errorf("attribute %s of a row is a key of the table or its index", a)
		}
	}
}
