// SPDX-License-Identifier: Apache-2.0

package dynamodb

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/seam/commitfeed"
	"github.com/lullhq/lull/internal/shard"
)

// image returns a row as the stream of the table shows the row. The function converts the row as
// Table converts its items.
func image(r shard.Row) map[string]map[string]any {
	if !r.Exists() {
		return nil
	}
	out := map[string]map[string]any{PartitionKey: {"S": string(r.Doc)}}
	for _, a := range attrs {
		v, ok := r.Get(a)
		if !ok {
			continue
		}
		switch av := encode(v).(type) {
		case *types.AttributeValueMemberB:
			out[string(a)] = map[string]any{"B": av.Value}
		case *types.AttributeValueMemberBS:
			out[string(a)] = map[string]any{"BS": av.Value}
		case *types.AttributeValueMemberS:
			out[string(a)] = map[string]any{"S": av.Value}
		case *types.AttributeValueMemberN:
			out[string(a)] = map[string]any{"N": av.Value}
		}
	}
	return out
}

// passes reports whether an event matches a pattern of EventBridge. The function knows two
// conditions: a text equals one of a list, and a field exists or is missing.
func passes(t *testing.T, pattern, event any) bool {
	t.Helper()
	switch p := pattern.(type) {
	case map[string]any:
		of, _ := event.(map[string]any)
		for name, below := range p {
			if !passes(t, below, of[name]) {
				return false
			}
		}
		return true
	case []any:
		for _, one := range p {
			if rule, ok := one.(map[string]any); ok {
				if wants, ok := rule["exists"].(bool); ok && len(rule) == 1 && wants == (event != nil) {
					return true
				}
			} else if reflect.DeepEqual(one, event) {
				return true
			}
		}
		return false
	}
	t.Fatalf("the pattern contains a %T, which passes does not know", pattern)
	return false
}

// This test feeds every write of a document to the stream. The pipe's pattern passes all commits,
// and the records that pass agree with the rows.
func TestThePatternOfTheFeedPassesEveryCommit(t *testing.T) {
	t.Parallel()
	var pattern any
	if err := json.Unmarshal([]byte(commitfeed.Pattern), &pattern); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := usecasetest.Open(t, nil)
		changes, passed, told := 0, 0, 0
		r.Shards.Watch = func(before, after shard.Row) {
			changes++
			name := "MODIFY"
			switch {
			case !before.Exists():
				name = "INSERT"
			case !after.Exists():
				name = "REMOVE"
			}
			record := map[string]any{"eventName": name, "eventSource": "aws:dynamodb", "dynamodb": map[string]any{
				"ApproximateCreationDateTime": float64(time.Now().UnixMilli()) / 1000,
				"Keys":                        map[string]any{PartitionKey: map[string]any{"S": string(before.Doc)}},
				"NewImage":                    image(after), "OldImage": image(before), "StreamViewType": "NEW_AND_OLD_IMAGES",
			}}
			text, err := json.Marshal([]any{record})
			if err != nil {
				t.Fatal(err)
			}
			var asEvent []any
			if err := json.Unmarshal(text, &asEvent); err != nil {
				t.Fatal(err)
			}
			want, commits := commitfeed.Of(before, after, time.Now())
			pass := passes(t, pattern, asEvent[0])
			if commits && !pass {
				t.Errorf("the pattern does not pass a record of a commit: %s", text)
			}
			got, err := commitfeed.FromStream(text)
			if err != nil || len(got) != map[bool]int{true: 1}[commits] || commits && !reflect.DeepEqual(got[0], want) {
				t.Errorf("FromStream returned %+v, %v; want %+v if this is a commit: %t", got, err, want, commits)
			}
			if pass {
				passed++
			}
			told += len(got)
		}
		for i := range 20 {
			e := r.EventOf(usecasetest.Put("a", i+1))
			if r.Row(e.Doc).Pending != e.Key {
				r.Admit(e)
			}
			if i%3 == 0 { // the sink is throttled, and the lease ends
				lease := r.Claim(e)
				r.Write(shard.Release(lease, "throttled", false))
				time.Sleep(time.Minute)
			}
			lease := r.Claim(e)
			if i%4 == 0 { // a newer version arrives during the write
				r.Admit(r.EventOf(usecasetest.Put("a", i+2)))
			}
			r.Commit(lease, shard.Put)
			time.Sleep(time.Minute)
		}
		r.Write(shard.Pause("search", usecasetest.Now(), "ann", "a move"))
		if told != 20 || passed < told || passed > 2*told || changes < 3*told {
			t.Errorf("the pattern passed %d of %d changes, and %d are commits; want 20 commits and at most 20 other changes", passed, changes,
				told)
		}
	})
}

// An unreadable record must not delay the records after it. A stream continues only after a record
// was accepted.
func TestWhatCannotBeReadOfTheStreamIsNamedAndPassedOver(t *testing.T) {
	t.Parallel()
	for _, batch := range []string{"", "{}", "null", `"[]"`, `[7]`} {
		if got, err := commitfeed.FromStream([]byte(batch)); err == nil || got != nil {
			t.Errorf("%s: got %+v, %v", batch, got, err)
		}
	}
	r := usecasetest.Open(t, nil)
	key, err := json.Marshal([]byte(r.EventOf(usecasetest.Put("a", 1)).Key))
	if err != nil {
		t.Fatal(err)
	}
	good := `{"dynamodb":{"Keys":{"doc":{"S":"content#a"}},"NewImage":{"committed":{"B":` + string(key) +
		`},"taken_back":{"BS":[` + string(key) + `]}}}}`
	for bad, says := range map[string]string{
		`{}`: "key `doc`", `{"dynamodb":{"Keys":{"id":{"S":"x"}}}}`: "key `doc`",
		`{"dynamodb":{"Keys":{"doc":{"S":"a#b"}},"NewImage":{"committed":{"S":"text"}}}}`:    "committed",
		`{"dynamodb":{"Keys":{"doc":{"S":"a#b"}},"OldImage":{"last_write":{"N":"1e99"}}}}`:   "last_write",
		`{"dynamodb":{"Keys":{"doc":{"S":"!letter#b"}},"NewImage":{"committed":{"S":"x"}}}}`: "",
	} {
		got, err := commitfeed.FromStream([]byte("[" + bad + "," + good + "]"))
		if len(got) != 1 || got[0].ID != "a" || (err == nil) != (says == "") ||
			err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %+v, %v", bad, got, err)
		}
	}
}
