// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"strconv"
	"strings"

	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/flight"
)

// Metric names a metric of CloudWatch.
type Metric struct {
	Namespace, Name string
	Dimensions      map[string]string
}

// Sink has methods that return the metrics of one sink.
type Sink struct {
	Config   *config.Config
	Name     string
	Machines []string // the ARNs of the sink's state machines
}

// Own returns a metric that lull's functions write.
func (s Sink) Own(name string) Metric {
	return Metric{metrics.Namespace, name, map[string]string{
		metrics.DimensionStack: s.Config.Stack, metrics.DimensionSink: s.Name,
	}}
}

// ByLane returns a metric that lull's functions write for each lane.
func (s Sink) ByLane(name string, lane flight.Lane) Metric {
	m := s.Own(name)
	m.Dimensions[metrics.DimensionLane] = string(lane)
	return m
}

// Function returns a metric of Lambda for one function of the sink.
func (s Sink) Function(f names.Function, name string) Metric {
	return Metric{"AWS/Lambda", name, map[string]string{"FunctionName": names.Of(s.Config).Function(s.Name, f)}}
}

// Functions returns the same metric of Lambda for every function of the sink.
func (s Sink) Functions(name string) []Metric {
	var all []Metric
	for _, f := range names.Functions() {
		all = append(all, s.Function(f, name))
	}
	return all
}

// Executions returns metrics of Step Functions. Each metric is returned for every state machine of
// the sink.
func (s Sink) Executions(counts ...string) []Metric {
	var all []Metric
	for _, name := range counts {
		for _, machine := range s.Machines {
			all = append(all, Metric{"AWS/States", name, map[string]string{"StateMachineArn": machine}})
		}
	}
	return all
}

// OnQueue returns a metric of SQS for a queue.
func OnQueue(name, queue string) Metric {
	return Metric{"AWS/SQS", name, map[string]string{"QueueName": queue}}
}

// OnJob returns a metric of Lambda for the function job.
func OnJob(name string, c *config.Config) Metric {
	return Metric{"AWS/Lambda", name, map[string]string{"FunctionName": names.Of(c).Job()}}
}

// OnPipe returns a metric of EventBridge Pipes for a pipe.
func OnPipe(name, pipe string) Metric {
	return Metric{"AWS/EventBridge/Pipes", name, map[string]string{"PipeName": pipe}}
}

// OnTable returns a metric of DynamoDB for the table.
func OnTable(name string, c *config.Config) Metric {
	return Metric{"AWS/DynamoDB", name, map[string]string{"TableName": names.Of(c).Table()}}
}

// OnIndex returns a metric of DynamoDB for the table's index `waiting`. The metrics of the table do
// not include throttled requests of the index.
func OnIndex(name string, c *config.Config) Metric {
	m := OnTable(name, c)
	m.Dimensions["GlobalSecondaryIndexName"] = dynamodb.IndexName
	return m
}

// Metrics returns all metrics of the alarm. The expression uses the names m0, m1 and so on for
// these metrics.
func (a Alarm) Metrics() []Metric { return append(append([]Metric(nil), a.Of...), a.Minus...) }

// Expression returns the metric math of an alarm on several metrics. A metric without data in a
// period counts as 0. If it had no data, the sum and the maximum would also have no data.
func (a Alarm) Expression() string {
	filled := make([]string, len(a.Of)+len(a.Minus))
	for i := range filled {
		filled[i] = "FILL(m" + strconv.Itoa(i) + ", 0)"
	}
	if a.Statistic == "Maximum" {
		return "MAX([" + strings.Join(filled, ", ") + "])"
	}
	expression := strings.Join(filled[:len(a.Of)], " + ")
	for _, m := range filled[len(a.Of):] {
		expression += " - " + m
	}
	return expression
}
