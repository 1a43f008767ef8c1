// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// Bodies stores the messages of dead letters and scheduled events, byte for byte, because they are
// too large for an item. The type Bodies is safe for concurrent use.
type Bodies interface {
	// Put stores a message under an id, and replaces an existing message.
	Put(ctx context.Context, id, body string, attrs map[string]queue.Attribute) error
	// Get returns the message, or false if there is none.
	Get(ctx context.Context, id string) (body string, attrs map[string]queue.Attribute, found bool, err error)
	// Delete removes the message; deleting a missing message succeeds.
	Delete(ctx context.Context, id string) error
}

// kind is the kind of an item: a dead letter, a scheduled event or a message.
type kind string

const (
	dead  kind = "dead"
	sched kind = "sched"
)

// buckets is how many partitions the index has for each kind of item.
const buckets = 8

// doc returns the partition key of an item in the table.
func (k kind) doc(id string) shard.DocID { return shard.DocID("!" + string(k) + "#" + id) }

// id returns the id of an item that was read from the table.
func (k kind) id(f fields) string { return strings.TrimPrefix(f.text(PartitionKey), string(k.doc(""))) }

func (k kind) partition(n uint32) string { return string(k) + "#" + strconv.Itoa(int(n)) }

// bucket returns the partition of an item in the index.
func (k kind) bucket(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return k.partition(h.Sum32() % buckets)
}

// moment converts a time into the beginning of a sort key. These texts sort like the times.
func moment(t time.Time) string { return fmt.Sprintf("%020d", max(shard.MicrosOf(t), 0)) }

// sortKey returns the sort key of an item in the index. Different items have different keys.
func sortKey(t time.Time, id string) string { return moment(t) + "#" + id }

// span is a range of sort keys: after < key <= to.
type span struct{ after, to string }

// until returns the span with another end: keys of the time t are included, and later keys are not.
func (s span) until(t time.Time) span { return span{s.after, moment(t) + "$"} }

// whole returns the span of all keys after the cursor.
func whole(cursor string) span { return span{cursor, "~"} }

type item = map[string]types.AttributeValue

// calls lists the methods of Table that the stores of dead letters and of scheduled events use.
// Tests replace these methods.
type calls interface {
	get(ctx context.Context, doc shard.DocID) (item, error)
	change(ctx context.Context, doing string, w shard.Write) (item, error)
	waiting(ctx context.Context, k kind, within span, limit, look int, keep func(item) bool) ([]item, string, error)
	countWaiting(ctx context.Context, k kind, filter string, names map[string]string, values item, atMost int) (
		n int, more bool, err error)
}

// stream is the state of reading one partition of the index, page by page.
type stream struct {
	partition string
	page      []item
	after     string
	ended     bool
}

// waiting returns up to limit items of a kind for which keep returns true, and the cursor for the
// next call. The items of all partitions are sorted by their sort keys. waiting reads at most look
// items, so that the call ends even if keep accepts none.
func (t *Table) waiting(ctx context.Context, k kind, within span, limit, look int, keep func(item) bool) ([]item,
	string, error,
) {
	if limit < 1 {
		return nil, "", fmt.Errorf("limit %d is not positive", limit)
	}
	streams := make([]*stream, buckets)
	for n := range streams {
		streams[n] = &stream{partition: k.partition(uint32(n)), after: within.after}
	}
	size := min(max(limit/2, 10), 200)
	var found []item
	for last := ""; ; look-- {
		if err := t.fill(ctx, streams, within.to, size); err != nil {
			return nil, "", err
		}
		next := first(streams)
		if next == nil {
			return found, "", nil
		}
		if len(found) == limit || look == 0 {
			return found, last, nil
		}
		it := next.page[0]
		next.page = next.page[1:]
		last = textOf(it[IndexSort])
		if keep(it) {
			found = append(found, it)
		}
	}
}

// fill reads, in parallel, the next page of every stream whose page is empty.
func (t *Table) fill(ctx context.Context, streams []*stream, to string, size int) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range streams {
		if len(s.page) > 0 || s.ended {
			continue
		}
		g.Go(func() error { return t.next(ctx, s, to, size) })
	}
	return g.Wait()
}

func (t *Table) next(ctx context.Context, s *stream, to string, size int) error {
	// "!" sorts before every character of an id. So every key that is greater than s.after is at
	// least from.
	from := s.after + "!"
	if to < from {
		s.ended = true
		return nil
	}
	out, err := t.api.Query(ctx, &sdk.QueryInput{
		TableName: &t.name, IndexName: aws.String(IndexName), Limit: aws.Int32(int32(size)),
		KeyConditionExpression:   aws.String("#bucket = :bucket AND #at BETWEEN :from AND :to"),
		ExpressionAttributeNames: map[string]string{"#bucket": IndexPartition, "#at": IndexSort},
		ExpressionAttributeValues: item{
			":bucket": &types.AttributeValueMemberS{Value: s.partition},
			":from":   &types.AttributeValueMemberS{Value: from},
			":to":     &types.AttributeValueMemberS{Value: to},
		},
	})
	if err != nil {
		return t.failure("list "+s.partition, err)
	}
	t.reads.Add(int64(len(out.Items)))
	s.page = out.Items
	if n := len(out.Items); n > 0 {
		s.after = textOf(out.Items[n-1][IndexSort])
	}
	s.ended = len(out.LastEvaluatedKey) == 0
	return nil
}

// countWaiting counts the items of a kind that match a filter. countWaiting stops when the count
// reaches atMost. more says that countWaiting did not read all items.
func (t *Table) countWaiting(ctx context.Context, k kind, filter string, names map[string]string, values item,
	atMost int,
) (n int, more bool, err error) {
	names["#bucket"] = IndexPartition
	for bucket := range uint32(buckets) {
		values[":bucket"] = &types.AttributeValueMemberS{Value: k.partition(bucket)}
		for from := item(nil); ; {
			out, err := t.api.Query(ctx, &sdk.QueryInput{
				TableName: &t.name, IndexName: aws.String(IndexName), Select: types.SelectCount,
				KeyConditionExpression: aws.String("#bucket = :bucket"), FilterExpression: &filter,
				ExpressionAttributeNames: names, ExpressionAttributeValues: values, ExclusiveStartKey: from,
			})
			if err != nil {
				return 0, false, t.failure("count "+k.partition(bucket), err)
			}
			t.reads.Add(int64(out.ScannedCount))
			n, from = n+int(out.Count), out.LastEvaluatedKey
			if n >= atMost && (len(from) > 0 || bucket+1 < buckets) {
				return n, true, nil
			}
			if len(from) == 0 {
				break
			}
		}
	}
	return n, false, nil
}

// first returns the stream whose next item has the smallest sort key, or nil if all pages are
// empty.
func first(streams []*stream) *stream {
	var best *stream
	for _, s := range streams {
		if len(s.page) > 0 && (best == nil || textOf(s.page[0][IndexSort]) < textOf(best.page[0][IndexSort])) {
			best = s
		}
	}
	return best
}

// get reads one item with a consistent read. The method returns nil if the item does not exist.
func (t *Table) get(ctx context.Context, doc shard.DocID) (item, error) {
	t.reads.Add(1)
	out, err := t.api.GetItem(ctx, &sdk.GetItemInput{
		TableName: &t.name, Key: key(doc), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, t.failure("read item", err)
	}
	return out.Item, nil
}

// change writes an item that is not a row of a document. The method returns the old item, or nil if
// there was none.
func (t *Table) change(ctx context.Context, doing string, w shard.Write) (item, error) {
	old, err := t.send(ctx, w)
	if err != nil {
		return nil, t.failure(doing, err)
	}
	return old, nil
}
