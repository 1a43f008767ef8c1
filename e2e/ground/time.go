// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/shard"
)

// A test about something that takes weeks changes the times in the table, as if the weeks had
// passed. Everything else in the tests runs in real time.

// Age makes the row of a document older. Nothing may be pending for the document.
func (s *Stack) Age(t testing.TB, key shard.DocID, by time.Duration) {
	t.Helper()
	row := s.Row(t, key)
	if row.ExpiresAt == 0 || row.Pending != "" {
		t.Fatalf("%s is pending: %+v", key, row)
	}
	s.update(t, key, "SET #write = #write - :micros, #expires = #expires - :seconds",
		map[string]string{"#write": string(shard.AttrLastWrite), "#expires": string(shard.AttrExpiresAt)},
		values{":micros": number(by.Microseconds()), ":seconds": number(int64(by / time.Second))})
}

// Lease sets an owner and a lease in the row of a document, as a killed invocation of index leaves
// them.
func (s *Stack) Lease(t testing.TB, key shard.DocID, length time.Duration) {
	t.Helper()
	s.update(t, key, "SET #owner = :owner, #until = :until",
		map[string]string{"#owner": string(shard.AttrOwner), "#until": string(shard.AttrLeaseUntil)},
		values{
			":owner": &types.AttributeValueMemberS{Value: "killed"},
			":until": number(time.Now().Add(length).UnixMicro()),
		})
}

// Schema sets the schema number of a row, as if code with this schema had written the row. 0
// removes the number, as in rows of code that wrote no schema number.
func (s *Stack) Schema(t testing.TB, key shard.DocID, schema int64) {
	t.Helper()
	attrs := map[string]string{"#schema": string(shard.AttrSchema)}
	if schema == 0 {
		s.update(t, key, "REMOVE #schema", attrs, nil)
		return
	}
	s.update(t, key, "SET #schema = :schema", attrs, values{":schema": number(schema)})
}

// Forget deletes the row of a document, as a restore of the table to an earlier time does.
func (s *Stack) Forget(t testing.TB, key shard.DocID) {
	t.Helper()
	_, err := sdk.NewFromConfig(s.Account).DeleteItem(t.Context(), &sdk.DeleteItemInput{
		TableName: aws.String(s.Names.Table()), Key: rowKey(key),
	})
	Must(t, err)
}

// ForgetPass makes the next run of prune read all rows, which otherwise happens once a day. The
// rule that starts prune must be off.
func (s *Stack) ForgetPass(t testing.TB) {
	t.Helper()
	Until(t, "no run of prune is under way", func() (bool, string) {
		row := s.Row(t, shard.RunRow("prune-"+Sink))
		return row.Owner == "", fmt.Sprintf("owner %q", row.Owner)
	})
	s.update(t, shard.RunRow("rows"), "REMOVE #cursor", map[string]string{"#cursor": string(shard.AttrCursor)},
		nil)
}

// rowKey returns the key of a row in the table.
func rowKey(key shard.DocID) values {
	return values{dynamodb.PartitionKey: &types.AttributeValueMemberS{Value: string(key)}}
}

type values = map[string]types.AttributeValue

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func (s *Stack) update(t testing.TB, key shard.DocID, expression string, attrs map[string]string, new values) {
	t.Helper()
	_, err := sdk.NewFromConfig(s.Account).UpdateItem(t.Context(), &sdk.UpdateItemInput{
		TableName: aws.String(s.Names.Table()), Key: rowKey(key), UpdateExpression: &expression,
		ExpressionAttributeNames: attrs, ExpressionAttributeValues: new,
	})
	if err != nil {
		t.Fatalf("change the row %s: %v", key, err)
	}
}

// PruneRule turns the rule that runs prune on or off. At the end of the test, the rule is turned on
// again.
func (s *Stack) PruneRule(t testing.TB, on bool) {
	t.Helper()
	if !on {
		t.Cleanup(func() { s.PruneRule(t, true) })
	}
	if err := s.rule(context.WithoutCancel(t.Context()), s.Names.Function(Sink, names.Prune), on); err != nil {
		t.Error(err)
	}
}

// rule enables or disables a rule of EventBridge.
func (s *Stack) rule(ctx context.Context, name string, on bool) error {
	action := "AWSEvents.DisableRule"
	if on {
		action = "AWSEvents.EnableRule"
	}
	return s.target(ctx, "events", action, map[string]any{"Name": name}, nil)
}
