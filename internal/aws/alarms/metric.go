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

// Sink names the metrics of one sink.
type Sink struct {
	Config   *config.Config
	Name     string
	Machines []string // the ARNs of its state machines
}

// Own is a metric that the functions count.
func (s Sink) Own(name string) Metric {
	return Metric{metrics.Namespace, name, map[string]string{
		metrics.DimensionStack: s.Config.Stack, metrics.DimensionSink: s.Name,
	}}
}

// ByLane is a metric that the functions count by lane.
func (s Sink) ByLane(name string, lane flight.Lane) Metric {
	m := s.Own(name)
	m.Dimensions[metrics.DimensionLane] = string(lane)
	return m
}

// Function is a metric of Lambda.
func (s Sink) Function(f names.Function, name string) Metric {
	return Metric{"AWS/Lambda", name, map[string]string{"FunctionName": names.Of(s.Config).Function(s.Name, f)}}
}

// Functions are the same metric of every function.
func (s Sink) Functions(name string) []Metric {
	var all []Metric
	for _, f := range names.Functions() {
		all = append(all, s.Function(f, name))
	}
	return all
}

// Executions are metrics of Step Functions, each for every state machine.
func (s Sink) Executions(counts ...string) []Metric {
	var all []Metric
	for _, name := range counts {
		for _, machine := range s.Machines {
			all = append(all, Metric{"AWS/States", name, map[string]string{"StateMachineArn": machine}})
		}
	}
	return all
}

// OnQueue is a metric of SQS.
func OnQueue(name, queue string) Metric {
	return Metric{"AWS/SQS", name, map[string]string{"QueueName": queue}}
}

// OnPipe is a metric of EventBridge Pipes.
func OnPipe(name, pipe string) Metric {
	return Metric{"AWS/EventBridge/Pipes", name, map[string]string{"PipeName": pipe}}
}

// OnTable is a metric of DynamoDB.
func OnTable(name string, c *config.Config) Metric {
	return Metric{"AWS/DynamoDB", name, map[string]string{"TableName": names.Of(c).Table()}}
}

// OnIndex is a metric of the table's index `waiting`. DynamoDB counts its throttles separately: the
// table's metric does not include them.
func OnIndex(name string, c *config.Config) Metric {
	m := OnTable(name, c)
	m.Dimensions["GlobalSecondaryIndexName"] = dynamodb.IndexName
	return m
}

// Metrics are all metrics of the alarm. The expression calls them m0, m1 and so on.
func (a Alarm) Metrics() []Metric { return append(append([]Metric(nil), a.Of...), a.Minus...) }

// Expression is the metric math of an alarm on several metrics. A metric without data in a period
// counts as 0: otherwise the sum and the maximum would have no data either.
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
