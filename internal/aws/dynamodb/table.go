// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
)

// attemptTimeout is the time-out of one request. DynamoDB normally answers within 20 ms, so a
// longer wait is useless.
const attemptTimeout = 2 * time.Second

// Table is the table `shards`. A Table is safe for concurrent use.
type Table struct {
	api     *sdk.Client
	name    string
	clk     clock.Clock
	reads   atomic.Int64
	writes  atomic.Int64
	refused atomic.Int64
}

var (
	_ shard.Store   = (*Table)(nil)
	_ shard.Scanner = (*Table)(nil)
)

// New returns the table with the given name. New switches off the retries of the SDK.
func New(cfg aws.Config, name string) *Table {
	return &Table{api: sdk.NewFromConfig(client.Bounded(cfg, attemptTimeout)), name: name, clk: clock.System{}}
}

// Counts returns how many rows were read, and how many writes were sent and refused, since the
// Table was created. writes includes refused writes, because DynamoDB charges for them, too. The
// SDK's error does not say how much capacity a refused write used.
func (t *Table) Counts() (reads, writes, refused int64) {
	return t.reads.Load(), t.writes.Load(), t.refused.Load()
}

// Write sends a write as one request, and returns the old row.
func (t *Table) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	item, err := t.send(ctx, w)
	if err == nil {
		return decode(w.Doc, item)
	}
	failed, refused := refusal(err)
	if !refused {
		return shard.Row{}, t.failure("write "+w.Transition.String(), err)
	}
	t.refused.Add(1)
	row, err := decode(w.Doc, failed.Item)
	if err != nil {
		return shard.Row{}, err
	}
	return shard.Row{}, &shard.Refused{Write: w.Transition, Row: row}
}

// send makes an UpdateItem or a DeleteItem request, and returns the old item.
func (t *Table) send(ctx context.Context, w shard.Write) (item, error) {
	e := w.Expression()
	var values item // must be nil if there are no values: DynamoDB refuses an empty map
	if len(e.Values) > 0 {
		values = make(item, len(e.Values))
	}
	for i, v := range e.Values {
		values[shard.ValueName(i)] = encode(v)
	}
	names, refused := e.Names, types.ReturnValuesOnConditionCheckFailureAllOld
	if e.Condition == "" {
		refused = ""
	}
	if len(names) == 0 {
		names = nil
	}
	t.writes.Add(1)
	if w.Drop {
		out, err := t.api.DeleteItem(ctx, &sdk.DeleteItemInput{
			TableName: &t.name, Key: key(w.Doc), ReturnValues: types.ReturnValueAllOld,
			ConditionExpression: text(e.Condition), ExpressionAttributeNames: names,
			ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: refused,
		})
		if err != nil {
			return nil, err
		}
		return out.Attributes, nil
	}
	out, err := t.api.UpdateItem(ctx, &sdk.UpdateItemInput{
		TableName: &t.name, Key: key(w.Doc), ReturnValues: types.ReturnValueAllOld,
		UpdateExpression: text(e.Update), ConditionExpression: text(e.Condition), ExpressionAttributeNames: names,
		ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: refused,
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

func key(doc shard.DocID) item {
	return item{PartitionKey: &types.AttributeValueMemberS{Value: string(doc)}}
}

// text returns a pointer to an expression. The function returns nil for an empty expression, which
// DynamoDB would refuse.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
