// SPDX-License-Identifier: Apache-2.0

package cloudwatch

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/smithy-go/encoding/cbor"
	"go.uber.org/goleak"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/aws/awstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers GetMetricData as CloudWatch does. The answer to each query has two pages with one
// value each.
type server struct {
	*testing.T
	fails string // the error code that answers each call; empty if calls succeed

	mu      sync.Mutex
	queries []string // "Committed Sum 60 Sink=search,Stack=shop"
	calls   int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	in, decoded := cbor.Decode(body)
	if err != nil || decoded != nil || path.Base(r.URL.Path) != "GetMetricData" {
		s.Errorf("%s: %v, %v", r.URL.Path, err, decoded)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
	w.Header().Set("Content-Type", "application/cbor")
	if s.fails != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(cbor.Encode(cbor.Map{"__type": cbor.String(s.fails), "message": cbor.String("no")}))
		return
	}
	question, ok := in.(cbor.Map)
	if !ok {
		s.Errorf("got %T", in)
	}
	page, paged := question["NextToken"].(cbor.String)
	var results cbor.List
	list, _ := question["MetricDataQueries"].(cbor.List)
	if len(list) > maxQueries {
		s.Errorf("one request has %d queries, more than CloudWatch allows", len(list))
	}
	for _, q := range list {
		id, of := s.query(q)
		if !paged {
			s.queries = append(s.queries, of)
		}
		n := 1.0
		if paged {
			n = 2
		}
		results = append(results, cbor.Map{
			"Id":         cbor.String(id),
			"Timestamps": cbor.List{&cbor.Tag{ID: 1, Value: cbor.Float64(60 * n)}}, "Values": cbor.List{cbor.Float64(n)},
		})
	}
	answer := cbor.Map{"MetricDataResults": results}
	if !paged {
		answer["NextToken"] = cbor.String("more" + string(page))
	}
	_, _ = w.Write(cbor.Encode(answer))
}

func (s *server) query(v cbor.Value) (id, of string) {
	q, _ := v.(cbor.Map)
	stat, _ := q["MetricStat"].(cbor.Map)
	metric, _ := stat["Metric"].(cbor.Map)
	var dims []string
	list, _ := metric["Dimensions"].(cbor.List)
	for _, d := range list {
		m, _ := d.(cbor.Map)
		dims = append(dims, fmt.Sprintf("%s=%s", m["Name"], m["Value"]))
	}
	period, err := cbor.AsInt32(stat["Period"])
	if err != nil {
		s.Error(err)
	}
	return fmt.Sprint(q["Id"]), fmt.Sprintf("%s/%s %s %d %s", metric["Namespace"], metric["MetricName"], stat["Stat"],
		period, strings.Join(dims, ","))
}

func TestSeriesAreAskedForTogetherAndReadPageByPage(t *testing.T) {
	t.Parallel()
	s := &server{T: t}
	m := New(awstest.Serve(t, s))
	queries := make([]Query, maxQueries+1)
	for i := range queries {
		queries[i] = Query{alarms.Metric{
			Namespace: "lull", Name: fmt.Sprint("M", i), Dimensions: map[string]string{"Stack": "shop"},
		}, "Sum"}
	}
	got, err := m.Series(t.Context(), queries, time.Unix(0, 0), time.Unix(600, 0), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if s.calls != 4 || len(s.queries) != len(queries) || s.queries[500] != "lull/M500 Sum 60 Stack=shop" {
		t.Errorf("%d calls, %d queries, the last %q", s.calls, len(s.queries), s.queries[len(s.queries)-1])
	}
	for i, series := range got {
		if len(series) != 2 || series[time.Unix(60, 0).UTC()] != 1 || series[time.Unix(120, 0).UTC()] != 2 {
			t.Fatalf("series %d: %v", i, series)
		}
	}
}

func TestAMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	s := &server{T: t, fails: "AccessDeniedException"}
	_, err := New(awstest.Serve(t, s)).Series(t.Context(), []Query{{}}, time.Unix(0, 0), time.Unix(60, 0), time.Minute)
	if err == nil || !strings.Contains(err.Error(), "cloudwatch:GetMetricData") || s.calls != 1 {
		t.Errorf("got %v after %d calls", err, s.calls)
	}
}
