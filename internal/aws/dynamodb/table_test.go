// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/shard"
)

// request is the part of a request that the tests check.
type request struct {
	Key                                 map[string]map[string]string
	ConditionExpression                 string
	UpdateExpression                    string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           map[string]map[string]string
	ReturnValues                        string
	ReturnValuesOnConditionCheckFailure string
	Segment, TotalSegments, Limit       int
	ExclusiveStartKey                   map[string]map[string]string
	RequestItems                        map[string]struct {
		Keys           []map[string]map[string]string
		ConsistentRead bool
	}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func testKey(t *testing.T, n string) shard.OrderKey {
	t.Helper()
	return shard.OrderKey("key-" + n)
}

func TestWriteIsOneRequestMadeOfItsExpression(t *testing.T) {
	t.Parallel()
	w := shard.Admit(shard.Admission{
		Doc: "content#a", Key: testKey(t, "2"), Class: shard.ClassInt, Flight: "f1",
		Now: 42,
	})
	var calls []awstest.Call
	cfg := awstest.JSON(t, func(c awstest.Call) awstest.Reply {
		calls = append(calls, c)
		return awstest.Reply{Body: `{"Attributes":{"doc":{"S":"content#a"},"pending":{"B":"` + b64("key-1") +
			`"},"burst_start":{"N":"7"},"flight":{"S":"f0"}}}`}
	})
	table := New(cfg, "shards")
	got, err := table.Write(awstest.Context(t), w)
	if err != nil {
		t.Fatalf("Write: %v", err)
	}
	if want := (shard.Row{Doc: "content#a", Pending: "key-1", BurstStart: 7, Flight: "f0"}); got != want {
		t.Errorf("old row: got %+v, want %+v", got, want)
	}
	if len(calls) != 1 || calls[0].Operation != "UpdateItem" {
		t.Fatalf("got calls %v, want one UpdateItem", calls)
	}
	var r request
	calls[0].Into(t, &r)
	e := w.Expression()
	if r.ConditionExpression != e.Condition || r.UpdateExpression != e.Update {
		t.Errorf("got %q and %q, want %q and %q", r.ConditionExpression, r.UpdateExpression, e.Condition, e.Update)
	}
	if r.ReturnValues != "ALL_OLD" || r.ReturnValuesOnConditionCheckFailure != "ALL_OLD" {
		t.Errorf("got return values %q and %q, want ALL_OLD twice", r.ReturnValues,
			r.ReturnValuesOnConditionCheckFailure)
	}
	for i, v := range e.Values {
		name, want := shard.ValueName(i), v.Text
		switch v.Kind {
		case shard.KindBinary:
			want = b64(v.Text)
		case shard.KindNumber:
			want = fmt.Sprint(v.Num)
		}
		if got := r.ExpressionAttributeValues[name][string(v.Kind)]; got != want {
			t.Errorf("value %s: got %q, want %q as %c", name, got, want, v.Kind)
		}
	}
	if got := r.Key["doc"]["S"]; got != "content#a" {
		t.Errorf("key: got %q", got)
	}
}

// DynamoDB may return the elements of a set in any order.
func TestWhatWasTakenBackIsABinarySet(t *testing.T) {
	t.Parallel()
	row := shard.Row{Doc: "content#a", TakenBack: shard.KeySetOf("k1", "k2")}
	v, _ := row.Get(shard.AttrTakenBack)
	set, ok := encode(v).(*types.AttributeValueMemberBS)
	if !ok || len(set.Value) != 2 {
		t.Fatalf("encoded as %#v", encode(v))
	}
	slices.Reverse(set.Value)
	got, err := decode(row.Doc, map[string]types.AttributeValue{"taken_back": set})
	if err != nil || got != row {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDropIsADeleteItem(t *testing.T) {
	t.Parallel()
	var op string
	cfg := awstest.JSON(t, func(c awstest.Call) awstest.Reply {
		var r request
		c.Into(t, &r)
		op = c.Operation
		if r.UpdateExpression != "" || r.ReturnValues != "ALL_OLD" || r.ConditionExpression == "" {
			t.Errorf("got %+v", r)
		}
		return awstest.Reply{Body: `{}`}
	})
	row, err := New(cfg, "shards").Write(awstest.Context(t), shard.Collect(shard.Row{Doc: "content#a", Committed: "k"},
		5))
	if err != nil || row != (shard.Row{Doc: "content#a"}) {
		t.Errorf("got %+v, %v, want an absent row", row, err)
	}
	if op != "DeleteItem" {
		t.Errorf("got %s, want DeleteItem", op)
	}
}

func TestErrorsAreToldApart(t *testing.T) {
	t.Parallel()
	const refusal = `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"The conditional request failed","Item":{"doc":{"S":"content#a"},"committed":{"B":"a2V5"}}}`
	tests := []struct {
		name      string
		reply     awstest.Reply
		throttled bool
		permanent bool
		refused   bool
		says      string
	}{
		{name: "refused", reply: awstest.Reply{Status: 400, Body: refusal}, refused: true, permanent: true},
		{name: "throughput exceeded", reply: awstest.Failure(400,
			"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "slow down"), throttled: true},
		{name: "request limit", reply: awstest.Failure(400, "RequestLimitExceeded", "slow down"), throttled: true},
		{name: "throttling", reply: awstest.Failure(400, "com.amazon.coral.availability#ThrottlingException",
			"slow down"), throttled: true},
		{
			name: "a throttle as an emulator spells it", reply: awstest.Failure(400, "DynamoDB.Throttling", "slow down"),
			throttled: true,
		},
		{
			name: "a transaction holds the item", reply: awstest.Failure(400, "TransactionConflictException", "conflict"),
			throttled: true,
		},
		{
			name: "no such table", reply: awstest.Failure(400,
				"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException", "not found"), permanent: true,
			says: "table shards",
		},
		{name: "access denied", reply: awstest.Failure(400, "com.amazon.coral.service#AccessDeniedException",
			"not authorized"), permanent: true, says: "grant"},
		{name: "expired credentials", reply: awstest.Failure(400, "com.amazon.coral.service#ExpiredTokenException",
			"expired"), permanent: true, says: "credentials"},
		{
			name: "validation", reply: awstest.Failure(400, "com.amazon.coral.validate#ValidationException", "bad"),
			permanent: true, says: "table shards",
		},
		{name: "internal error", reply: awstest.Failure(500, "InternalServerError", "oops")},
		{name: "unavailable", reply: awstest.Failure(503, "ServiceUnavailable", "oops")},
		{name: "a proxy's page", reply: awstest.Reply{Status: 502, Body: "<html>bad gateway</html>"}},
		{name: "no JSON", reply: awstest.Reply{Status: 200, Body: "{"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			table := New(awstest.JSON(t, func(awstest.Call) awstest.Reply { calls++; return tt.reply }), "shards")
			_, err := table.Write(awstest.Context(t), shard.Redrive("content#a", "k", 1))
			if err == nil {
				t.Fatal("got no error")
			}
			if got := errors.Is(err, shard.ErrThrottled); got != tt.throttled {
				t.Errorf("throttled: got %v, want %v: %v", got, tt.throttled, err)
			}
			if got := backoff.Final(err); got != tt.permanent {
				t.Errorf("final: got %v, want %v: %v", got, tt.permanent, err)
			}
			refused, ok := shard.AsRefused(err)
			if ok != tt.refused {
				t.Errorf("refused: got %v, want %v: %v", ok, tt.refused, err)
			}
			if ok && (refused.Row != (shard.Row{Doc: "content#a", Committed: "key"}) || refused.Write != shard.REDRIVE) {
				t.Errorf("got %+v", refused)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %q, want it to say %q", err, tt.says)
			}
			if calls != 1 {
				t.Errorf("got %d requests, want one: package backoff alone retries", calls)
			}
			_, writes, refusals := table.Counts()
			if writes != 1 || (refusals == 1) != tt.refused {
				t.Errorf("counted %d writes and %d refusals", writes, refusals)
			}
		})
	}
}

func TestAnAnswerThatDoesNotComeIsNotTheCallersDeadline(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	cfg := awstest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(release) })
	_, err := New(cfg, "shards").Write(awstest.Context(t), shard.Redrive("content#a", "k", 1))
	if err == nil || backoff.Final(err) {
		t.Errorf("got %v, want an error that may be tried again", err)
	}
	ctx, cancel := context.WithTimeout(awstest.Context(t), 50*time.Millisecond)
	defer cancel()
	if _, err = New(cfg, "shards").Write(ctx, shard.Redrive("content#a", "k", 1)); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("got %v, want the caller's deadline", err)
	}
}

func TestARowThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	for name, attrs := range map[string]string{
		"key as text":                       `"pending":{"S":"x"}`,
		"time as text":                      `"lease_until":{"S":"x"}`,
		"fraction":                          `"lease_until":{"N":"1.5"}`,
		"a number beyond 64 bits":           `"lease_until":{"N":"99999999999999999999"}`,
		"a text attribute of the type BOOL": `"owner":{"BOOL":true}`,
		"a text attribute of the type N":    `"owner":{"N":"1"}`,
		"a text attribute of the type SS":   `"flight":{"SS":["a"]}`,
		"a number as the version class":     `"version_class":{"N":"1"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := awstest.JSON(t, func(awstest.Call) awstest.Reply {
				return awstest.Reply{Body: `{"Attributes":{"doc":{"S":"content#a"},` + attrs + `}}`}
			})
			if row, err := New(cfg, "shards").Write(awstest.Context(t),
				shard.Redrive("content#a", "k", 1)); err == nil {
				t.Errorf("got %+v, want an error", row)
			}
		})
	}
}

func TestReadAsksForEachKeyOnceInBatchesOfAHundred(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sizes []int
	seen := map[string]int{}
	cfg := awstest.JSON(t, func(c awstest.Call) awstest.Reply {
		var r request
		c.Into(t, &r)
		in := r.RequestItems["shards"]
		if !in.ConsistentRead {
			t.Error("the request does not ask for a consistent read")
		}
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, len(in.Keys))
		var items []string
		for _, k := range in.Keys {
			doc := k["doc"]["S"]
			seen[doc]++
			if !strings.HasSuffix(doc, "0") { // the table has no row for a document whose number ends in 0
				items = append([]string{`{"doc":{"S":"` + doc + `"},"flight":{"S":"` + doc + `"}}`}, items...)
			}
		}
		return awstest.Reply{Body: `{"Responses":{"shards":[` + strings.Join(items, ",") + `]}}`}
	})
	var docs []shard.DocID
	for i := range 250 {
		doc := shard.DocID(fmt.Sprintf("content#%d", i))
		docs = append(docs, doc, doc)
	}
	rows, err := New(cfg, "shards").Read(awstest.Context(t), docs, shard.Consistent)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	if len(rows) != 500 || len(sizes) != 3 || len(seen) != 250 {
		t.Errorf("got %d rows from %d requests for %d keys, want 500 rows from 3 requests for 250 keys", len(rows), len(sizes), len(seen))
	}
	for doc, n := range seen {
		if n != 1 {
			t.Errorf("the requests named %s %d times, want once", doc, n)
		}
	}
	for i, row := range rows {
		want := shard.Row{Doc: docs[i]}
		if !strings.HasSuffix(string(docs[i]), "0") {
			want.Flight = string(docs[i])
		}
		if row != want {
			t.Errorf("row %d: got %+v, want %+v", i, row, want)
		}
	}
}

func TestUnprocessedKeysAreAskedForAgain(t *testing.T) {
	t.Parallel()
	calls := 0
	cfg := awstest.JSON(t, func(c awstest.Call) awstest.Reply {
		calls++
		var r request
		c.Into(t, &r)
		keys := r.RequestItems["shards"].Keys
		first := keys[0]["doc"]["S"]
		var left []string
		for _, k := range keys[1:] {
			left = append(left, `{"doc":{"S":"`+k["doc"]["S"]+`"}}`)
		}
		body := `{"Responses":{"shards":[{"doc":{"S":"` + first + `"},"flight":{"S":"x"}}]}`
		if len(left) > 0 {
			body += `,"UnprocessedKeys":{"shards":{"Keys":[` + strings.Join(left, ",") + `]}}`
		}
		return awstest.Reply{Body: body + `}`}
	})
	rows, err := New(cfg, "shards").Read(awstest.Context(t), []shard.DocID{"c#1", "c#2", "c#3"}, shard.Eventual)
	if err != nil || calls != 3 {
		t.Fatalf("got %v after %d requests, want rows after 3", err, calls)
	}
	for _, r := range rows {
		if r.Flight != "x" {
			t.Errorf("the row %s was not read", r.Doc)
		}
	}
}

func TestKeysThatStayUnprocessedAreAThrottle(t *testing.T) {
	t.Parallel()
	calls := 0
	cfg := awstest.JSON(t, func(awstest.Call) awstest.Reply {
		calls++
		return awstest.Reply{Body: `{"Responses":{},"UnprocessedKeys":{"shards":{"Keys":[{"doc":{"S":"c#1"}}]}}}`}
	})
	_, err := New(cfg, "shards").Read(awstest.Context(t), []shard.DocID{"c#1"}, shard.Eventual)
	if !errors.Is(err, shard.ErrThrottled) {
		t.Errorf("got %v, want ErrThrottled", err)
	}
	if calls != backoff.Row().Tries {
		t.Errorf("got %d requests, want %d", calls, backoff.Row().Tries)
	}
}

func TestScanGoesByKey(t *testing.T) {
	t.Parallel()
	cfg := awstest.JSON(t, func(c awstest.Call) awstest.Reply {
		var r request
		c.Into(t, &r)
		if r.Segment != 1 || r.TotalSegments != 4 || r.Limit != 2 {
			t.Errorf("got segment %d of %d, limit %d", r.Segment, r.TotalSegments, r.Limit)
		}
		if r.ExclusiveStartKey == nil {
			return awstest.Reply{
				Body: `{"Items":[{"doc":{"S":"c#1"}},{"doc":{"S":"!dead#x"},"reason":{"S":"rejected"}}],"LastEvaluatedKey":{"doc":{"S":"!dead#x"}}}`,
			}
		}
		if got := r.ExclusiveStartKey["doc"]["S"]; got != "!dead#x" {
			t.Errorf("cursor: got %q", got)
		}
		return awstest.Reply{Body: `{"Items":[]}`}
	})
	table := New(cfg, "shards")
	rows, next, err := table.Scan(awstest.Context(t), 1, 4, "", 2)
	if err != nil || len(rows) != 2 || next != "!dead#x" || rows[1] != (shard.Row{Doc: "!dead#x"}) {
		t.Fatalf("got %v, %q, %v", rows, next, err)
	}
	rows, next, err = table.Scan(awstest.Context(t), 1, 4, next, 2)
	if err != nil || len(rows) != 0 || next != "" {
		t.Errorf("got %v, next %q, %v; want no rows and no next page", rows, next, err)
	}
	if _, _, err := table.Scan(awstest.Context(t), 4, 4, "", 2); err == nil {
		t.Error("a scan of segment 4 of 0 to 3 returned no error")
	}
}
