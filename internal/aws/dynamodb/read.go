// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/shard"
)

const (
	// maxKeys is how many keys one BatchGetItem request may have.
	maxKeys = 100
	// maxReads is how many BatchGetItem requests run at the same time. So the 2,000 documents of a
	// turn take three rounds.
	maxReads = 8
	// maxRounds is how many requests are made for one batch at most, if each request answers only a
	// part of the keys.
	maxRounds = 10
)

// Read gets rows in batches of a hundred. Up to maxReads batches are read at the same time.
func (t *Table) Read(ctx context.Context, docs []shard.DocID, c shard.Consistency) ([]shard.Row, error) {
	place := make(map[shard.DocID]int, len(docs))
	unique := make([]shard.DocID, 0, len(docs))
	for _, doc := range docs {
		if _, seen := place[doc]; !seen { // DynamoDB refuses a batch with equal keys
			place[doc] = len(unique)
			unique = append(unique, doc)
		}
	}
	found := make([]shard.Row, len(unique))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxReads)
	for from := 0; from < len(unique); from += maxKeys {
		to := min(from+maxKeys, len(unique))
		g.Go(func() error { return t.readBatch(ctx, unique[from:to], found[from:to], c) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	rows := make([]shard.Row, len(docs))
	for i, doc := range docs {
		rows[i] = found[place[doc]]
	}
	return rows, nil
}

// readBatch reads the items of docs and stores them in rows.
func (t *Table) readBatch(ctx context.Context, docs []shard.DocID, rows []shard.Row, c shard.Consistency) error {
	keys := make([]map[string]types.AttributeValue, len(docs))
	place := make(map[shard.DocID]int, len(docs))
	for i, doc := range docs {
		keys[i], place[doc], rows[i] = key(doc), i, shard.Row{Doc: doc}
	}
	policy := backoff.Row()
	for round, idle := 0, 0; ; round++ {
		items, left, err := t.getItems(ctx, keys, c)
		if err != nil {
			return err
		}
		for _, item := range items {
			doc := shard.DocID(textOf(item[PartitionKey]))
			i, asked := place[doc]
			if !asked {
				return backoff.Permanent(fmt.Errorf("read rows: table %s answered with an item that was not asked for",
					t.name))
			}
			if rows[i], err = decode(doc, item); err != nil {
				return err
			}
		}
		if len(left) == 0 {
			return nil
		}
		if idle++; len(left) < len(keys) {
			idle = 0
		}
		if idle >= policy.Tries || round+1 >= maxRounds {
			return fmt.Errorf("read rows: %d of %d keys stay unprocessed: %w", len(left), len(docs), shard.ErrThrottled)
		}
		if err := t.clk.Sleep(ctx, policy.Delay(round)); err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
		keys = left
	}
}

// getItems makes one BatchGetItem request. getItems returns the items and the unprocessed keys.
func (t *Table) getItems(ctx context.Context, keys []map[string]types.AttributeValue, c shard.Consistency) (items,
	left []map[string]types.AttributeValue, err error,
) {
	t.reads.Add(int64(len(keys)))
	out, err := t.api.BatchGetItem(ctx, &sdk.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		t.name: {Keys: keys, ConsistentRead: aws.Bool(bool(c))},
	}})
	if err != nil {
		return nil, nil, t.failure("read rows", err)
	}
	for _, k := range out.UnprocessedKeys {
		left = append(left, k.Keys...)
	}
	for _, found := range out.Responses {
		items = append(items, found...)
	}
	return items, left, nil
}

// Scan reads one page of a segment. The cursor is the last key of the previous page.
func (t *Table) Scan(ctx context.Context, segment, segments int, cursor string, limit int) ([]shard.Row, string,
	error,
) {
	if segments < 1 || segment < 0 || segment >= segments || limit < 1 {
		return nil, "", fmt.Errorf("scan segment %d of %d, limit %d: out of range", segment, segments, limit)
	}
	in := &sdk.ScanInput{
		TableName: &t.name, Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(segments)),
		Limit: aws.Int32(int32(limit)),
	}
	if cursor != "" {
		in.ExclusiveStartKey = key(shard.DocID(cursor))
	}
	out, err := t.api.Scan(ctx, in)
	if err != nil {
		return nil, "", t.failure("scan", err)
	}
	t.reads.Add(int64(len(out.Items)))
	rows := make([]shard.Row, len(out.Items))
	for i, item := range out.Items {
		if rows[i], err = decode(shard.DocID(textOf(item[PartitionKey])), item); err != nil {
			return nil, "", err
		}
	}
	return rows, textOf(out.LastEvaluatedKey[PartitionKey]), nil
}
