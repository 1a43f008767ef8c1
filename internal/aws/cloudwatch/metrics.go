package cloudwatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
)

const (
	attemptTimeout = 15 * time.Second // of one request
	maxQueries     = 500              // of one request: AWS's limit
	maxPages       = 20               // of one answer: a page has 100,800 values at most
)

// Metrics are an account's metrics. It is safe for concurrent use.
type Metrics struct {
	api *sdk.Client
	clk clock.Clock
}

// New returns the account's metrics. Its settings are used without retries of the SDK's own.
func New(cfg aws.Config) *Metrics {
	return &Metrics{api: sdk.NewFromConfig(client.Bounded(cfg, attemptTimeout)), clk: clock.System{}}
}

// Query asks for one metric.
type Query struct {
	Metric alarms.Metric
	Stat   string // Sum, p50, p99
}

// Series are the values of one metric, by the beginning of their periods. Periods without a value
// are missing.
type Series map[time.Time]float64

// Series answers the queries in their order, period by period. A period is whole minutes.
func (m *Metrics) Series(ctx context.Context, queries []Query, since, until time.Time, period time.Duration) ([]Series,
	error,
) {
	all := make([]Series, len(queries))
	place := map[string]int{}
	var ask []types.MetricDataQuery
	for i, q := range queries {
		all[i] = Series{}
		id := fmt.Sprintf("q%d", i)
		place[id] = i
		ask = append(ask, types.MetricDataQuery{Id: &id, MetricStat: &types.MetricStat{
			Metric: &types.Metric{
				Namespace: &q.Metric.Namespace, MetricName: &q.Metric.Name, Dimensions: dimensions(q.Metric),
			},
			Period: aws.Int32(int32(period.Seconds())), Stat: &q.Stat,
		}})
	}
	for part := range slices.Chunk(ask, maxQueries) {
		in := &sdk.GetMetricDataInput{MetricDataQueries: part, StartTime: &since, EndTime: &until}
		for range maxPages {
			out, err := backoff.Get(ctx, m.clk, func() (*sdk.GetMetricDataOutput, error) {
				out, err := m.api.GetMetricData(ctx, in)
				return out, failure(err)
			})
			if err != nil {
				return nil, err
			}
			for _, r := range out.MetricDataResults {
				i, ours := place[aws.ToString(r.Id)]
				for n := range min(len(r.Timestamps), len(r.Values)) {
					if ours {
						all[i][r.Timestamps[n].UTC()] = r.Values[n]
					}
				}
			}
			if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
				break
			}
		}
	}
	return all, nil
}

func dimensions(m alarms.Metric) (all []types.Dimension) {
	for name, value := range m.Dimensions {
		all = append(all, types.Dimension{Name: &name, Value: &value})
	}
	return all
}

// failure says what an error of CloudWatch means.
func failure(err error) error {
	return client.Explain("metrics", err,
		client.Final{Says: " refuse the question", Codes: []string{"InvalidParameter"}},
		client.Final{
			Says: ": the credentials may not do this: assume the reader's role, or grant cloudwatch:GetMetricData",
		})
}
