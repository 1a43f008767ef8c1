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
	"github.com/lullhq/lull/internal/names"
	"github.com/lullhq/lull/internal/shard"
)

// What takes weeks is told to the table, as if the weeks had passed. Everything else runs in real
// time.

// Age makes the row of a document older for which nothing is pending.
func (s *Stack) Age(t testing.TB, key shard.DocID, by time.Duration) {
	t.Helper()
	row := s.Row(t, key)
	if row.ExpiresAt == 0 || row.Pending != "" {
		t.Fatalf("%s is pending: %+v", key, row)
	}
	s.update(t, string(key), "SET #write = #write - :micros, #expires = #expires - :seconds",
		map[string]string{"#write": string(shard.AttrLastWrite), "#expires": string(shard.AttrExpiresAt)},
		map[string]int64{":micros": by.Microseconds(), ":seconds": int64(by / time.Second)})
}

// Lease gives the row of a document an owner, as an invocation of index would have that is killed.
func (s *Stack) Lease(t testing.TB, key shard.DocID, length time.Duration) {
	t.Helper()
	until := strconv.FormatInt(time.Now().Add(length).UnixMicro(), 10)
	_, err := sdk.NewFromConfig(s.Account).UpdateItem(t.Context(), &sdk.UpdateItemInput{
		TableName: aws.String(s.Names.Table()), Key: item(string(key)),
		UpdateExpression: aws.String("SET #owner = :owner, #until = :until"),
		ExpressionAttributeNames: map[string]string{
			"#owner": string(shard.AttrOwner), "#until": string(shard.AttrLeaseUntil),
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":owner": &types.AttributeValueMemberS{Value: "killed"},
			":until": &types.AttributeValueMemberN{Value: until},
		},
	})
	must(t, err)
}

// Schema sets the schema of a row, as code of that schema writes it; 0 for code that wrote none.
func (s *Stack) Schema(t testing.TB, key shard.DocID, schema int64) {
	t.Helper()
	attrs := map[string]string{"#schema": string(shard.AttrSchema)}
	if schema == 0 {
		s.update(t, string(key), "REMOVE #schema", attrs, nil)
		return
	}
	s.update(t, string(key), "SET #schema = :schema", attrs, map[string]int64{":schema": schema})
}

// Forget deletes the row of a document, as a restore of the table to an earlier time does.
func (s *Stack) Forget(t testing.TB, key shard.DocID) {
	t.Helper()
	_, err := sdk.NewFromConfig(s.Account).DeleteItem(t.Context(), &sdk.DeleteItemInput{
		TableName: aws.String(s.Names.Table()), Key: item(string(key)),
	})
	must(t, err)
}

// ForgetPass lets the next run of prune pass over the rows again, as it does once a day. The rule
// must be off.
func (s *Stack) ForgetPass(t testing.TB) {
	t.Helper()
	Until(t, "no run of prune is under way", func() (bool, string) {
		row := s.Row(t, shard.RunRow("prune-"+Sink))
		return row.Owner == "", fmt.Sprintf("owner %q", row.Owner)
	})
	s.update(t, string(shard.RunRow("rows")), "REMOVE #cursor", map[string]string{"#cursor": string(shard.AttrCursor)},
		nil)
}

// item is the key of a row in the table.
func item(key string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{dynamodb.PartitionKey: &types.AttributeValueMemberS{Value: key}}
}

func (s *Stack) update(t testing.TB, key, expression string, attrs map[string]string, values map[string]int64) {
	t.Helper()
	in := &sdk.UpdateItemInput{
		TableName: aws.String(s.Names.Table()), Key: item(key),
		UpdateExpression: &expression, ExpressionAttributeNames: attrs,
	}
	if len(values) > 0 {
		in.ExpressionAttributeValues = make(map[string]types.AttributeValue)
	}
	for name, n := range values {
		in.ExpressionAttributeValues[name] = &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	if _, err := sdk.NewFromConfig(s.Account).UpdateItem(t.Context(), in); err != nil {
		t.Fatalf("change the row %s: %v", key, err)
	}
}

// PruneRule turns the rule that runs prune on or off. It is on again when the test ends.
func (s *Stack) PruneRule(t testing.TB, on bool) {
	t.Helper()
	set := func(on bool) {
		t.Helper()
		action := "AWSEvents.DisableRule"
		if on {
			action = "AWSEvents.EnableRule"
		}
		in := map[string]any{"Name": s.Names.Function(Sink, names.Prune)}
		if err := s.target(context.WithoutCancel(t.Context()), "events", action, in, nil); err != nil {
			t.Error(err)
		}
	}
	if !on {
		t.Cleanup(func() { set(true) })
	}
	set(on)
}
