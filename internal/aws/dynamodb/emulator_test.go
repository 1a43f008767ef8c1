// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
)

// create creates a table at the emulator and returns the name of the table. The end of the test
// deletes the table.
func create(t *testing.T, cfg aws.Config) string {
	t.Helper()
	api := sdk.NewFromConfig(client.Plain(cfg))
	name := awstest.Name(t)
	if _, err := api.CreateTable(awstest.Context(t), Definition(name)); err != nil {
		t.Fatalf("create table: %v", err)
	}
	t.Cleanup(func() {
		if _, err := api.DeleteTable(context.WithoutCancel(t.Context()),
			&sdk.DeleteTableInput{TableName: &name}); err != nil {
			t.Errorf("delete table: %v", err)
		}
	})
	err := sdk.NewTableExistsWaiter(api, func(o *sdk.TableExistsWaiterOptions) { o.MinDelay = 50 * time.Millisecond }).
		Wait(awstest.Context(t), &sdk.DescribeTableInput{TableName: &name}, time.Minute)
	if err != nil {
		t.Fatalf("wait for table: %v", err)
	}
	return name
}

func TestTheTableKeepsThePromisesOfAShardStore(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	table := judgedTable{New(cfg, create(t, cfg)), new(sync.Map)}
	t.Run("suite", func(t *testing.T) {
		shardtest.Run(t, table, shardtest.Capabilities{Scan: true, Rounds: 5})
	})
	for _, of := range shard.Transitions() {
		if _, judged := table.judged.Load(of); !judged {
			t.Errorf("no expression of %s reached the emulator: the suite has no case for it", of)
		}
	}
}

// judgedTable notes the transitions whose expressions DynamoDB took: it made the update, or its
// condition refused the row.
type judgedTable struct {
	*Table
	judged *sync.Map
}

func (j judgedTable) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	row, err := j.Table.Write(ctx, w)
	if _, refused := shard.AsRefused(err); err == nil || refused {
		j.judged.Store(w.Transition, true)
	}
	return row, err
}

// If a service accepts overlapping paths, the suite above does not prove that every expression of
// the protocol is valid. This test shows whether the service refuses overlapping paths.
func TestTheEmulatorRefusesWhatDynamoDBRefuses(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	name := create(t, cfg)
	api := sdk.NewFromConfig(client.Plain(cfg))
	for what, update := range map[string]string{
		"an attribute set twice":         "SET #a = :one, #a = :two",
		"an attribute set and removed":   "SET #a = :one REMOVE #a",
		"a reserved word without a name": "SET owner = :one ADD #a :two",
	} {
		in := &sdk.UpdateItemInput{
			TableName: &name, Key: key("c#1"), UpdateExpression: &update,
			ExpressionAttributeNames: map[string]string{"#a": "attempts"},
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":one": &types.AttributeValueMemberN{Value: "1"}, ":two": &types.AttributeValueMemberN{Value: "2"},
			},
		}
		if _, err := api.UpdateItem(awstest.Context(t), in); client.Code(err) != "Validation" {
			t.Errorf("%s: got %v, want a validation error", what, err)
		}
	}
}

func TestAMissingTableSaysSo(t *testing.T) {
	t.Parallel()
	cfg := awstest.Emulator(t)
	table := New(cfg, awstest.Name(t))
	ctx := awstest.Context(t)
	for what, f := range map[string]func() error{
		"read":  func() error { _, err := table.Read(ctx, []shard.DocID{"c#1"}, shard.Consistent); return err },
		"write": func() error { _, err := table.Write(ctx, shard.Redrive("c#1", "k", 1)); return err },
		"scan":  func() error { _, _, err := table.Scan(ctx, 0, 1, "", 10); return err },
		"list": func() error {
			_, _, err := NewLetters(table, nil).List(ctx, deadletter.Filter{}, "",
				10)
			return err
		},
	} {
		// the first answers of an emulator may be late
		late := backoff.Policy{Min: 200 * time.Millisecond, Max: 2 * time.Second, Tries: 20}
		err := late.Do(ctx, clock.System{}, f)
		if err == nil || !backoff.Final(err) || !strings.Contains(err.Error(), table.name) {
			t.Errorf("%s: got %v, want a permanent error that names the table", what, err)
		}
	}
}
