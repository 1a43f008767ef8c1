// SPDX-License-Identifier: Apache-2.0

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
	attemptTimeout = 15 * time.Second // the time-out of one request
	maxQueries     = 500              // the largest number of metrics in one request, which is AWS's limit
	maxPages       = 20               // the largest number of pages of one answer; a page has at most 100,800 values
)

// Metrics reads the metrics of an AWS account. The type Metrics is safe for concurrent use.
type Metrics struct {
	api *sdk.Client
	clk clock.Clock
}

// New returns the metrics of an account. New switches off the retries of the SDK.
func New(cfg aws.Config) *Metrics {
	return &Metrics{api: sdk.NewFromConfig(client.Bounded(cfg, attemptTimeout)), clk: clock.System{}}
}

// Query names one metric and a statistic.
type Query struct {
	Metric alarms.Metric
	Stat   string // Sum, p50, p99
}

// Series contains the values of one metric, by the beginning of their periods. A period without a
// value is missing.
type Series map[time.Time]float64

// Series returns a series for each query, in the order of the queries. period must be whole
// minutes.
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

// failure explains an error of CloudWatch.
func failure(err error) error {
	return client.Explain("metrics", err,
		client.Final{Says: " : CloudWatch refuses the request", Codes: []string{"InvalidParameter"}},
		client.Final{
			Says: ": the credentials do not permit this: assume the reader's role, or grant cloudwatch:GetMetricData",
		})
}
