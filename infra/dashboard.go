package infra

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/names"
)

// A dashboard is 24 columns wide: three graphs in a row.
const (
	graphWidth  = 8
	graphHeight = 6
	graphsInRow = 3
)

// graph is one widget of the dashboard.
type graph struct {
	title     string
	statistic string
	of        []alarms.Metric
}

// newDashboard shows, for the stack and for each sink, what the runbook's pages look at first.
func (l *Lull) newDashboard() {
	graphs := []graph{{"table: units", "Sum", []alarms.Metric{
		alarms.OnTable("ConsumedWriteCapacityUnits", l.props.Config),
		alarms.OnTable("ConsumedReadCapacityUnits", l.props.Config),
	}}}
	for _, name := range sinkNames(l.props.Config) {
		graphs = append(graphs, l.Sinks[name].graphs()...)
	}
	widgets := make([]any, len(graphs), len(graphs)+1)
	for i, g := range graphs {
		widgets[i] = g.widget(i)
	}
	widgets = append(widgets, map[string]any{
		"type": "alarm", "width": graphsInRow * graphWidth, "height": graphHeight, "x": 0,
		"y":          (len(graphs) + graphsInRow - 1) / graphsInRow * graphHeight,
		"properties": map[string]any{"title": "alarms", "alarms": l.alarmARNs},
	})
	body, err := json.Marshal(map[string]any{"widgets": widgets})
	if err != nil {
		panic(fmt.Errorf("write dashboard: %w", err)) // texts and numbers: cannot happen
	}
	awscloudwatch.NewCfnDashboard(l.Construct, jsii.String("Dashboard"), &awscloudwatch.CfnDashboardProps{
		DashboardName: jsii.String(names.Of(l.props.Config).Dashboard()),
		DashboardBody: jsii.String(string(body)),
	})
}

func (s *Sink) graphs() []graph {
	w := s.watched()
	queues := func(metricName string) []alarms.Metric {
		n := s.names()
		queues := []string{n.Queue(s.Name, flight.Live), n.Queue(s.Name, flight.Bulk), n.DeadQueue(s.Name)}
		return every(queues, func(queue string) alarms.Metric { return alarms.OnQueue(metricName, queue) })
	}
	steps := func(all ...journal.Step) []alarms.Metric {
		return every(all, func(step journal.Step) alarms.Metric { return w.Own(metrics.Name(step)) })
	}
	fresh := []alarms.Metric{
		w.ByLane(metrics.Freshness, flight.Live),
		w.ByLane(metrics.Freshness, flight.Bulk),
	}
	return []graph{
		{s.Name + ": freshness, p99 in ms", "p99", fresh},
		{s.Name + ": what became of events", "Sum", steps(journal.Received, journal.Committed, journal.Superseded,
			journal.Stale, journal.Duplicate)},
		{s.Name + ": flights", "Sum", append(steps(journal.LaunchLost), w.Executions("ExecutionsStarted",
			"ExecutionsFailed", "ExecutionsTimedOut", "ExecutionThrottled")...)},
		{s.Name + ": what must not be", "Sum", steps(journal.Stuck, journal.SinkNewer,
			journal.SinkConfiguration, journal.Blocked, journal.Schema,
			journal.LeaseLost, journal.Parked)},
		{s.Name + ": the sink's health", "Sum", steps(journal.CircuitOpened, journal.OutcomeUnknown, journal.Released,
			journal.Rejected)},
		{s.Name + ": messages waiting", "Maximum", queues("ApproximateNumberOfMessagesVisible")},
		{s.Name + ": messages held", "Maximum", queues("ApproximateNumberOfMessagesNotVisible")},
		{s.Name + ": oldest message, s", "Maximum", queues("ApproximateAgeOfOldestMessage")},
		{s.Name + ": function errors", "Sum", w.Functions("Errors")},
		{s.Name + ": throttles", "Sum", w.Functions("Throttles")},
		{s.Name + ": function time, p99 in ms", "p99", w.Functions("Duration")},
		{s.Name + ": concurrency", "Maximum", w.Functions("ConcurrentExecutions")},
	}
}

// widget is the graph as CloudWatch reads it, in its place.
func (g graph) widget(i int) map[string]any {
	lines := make([]any, len(g.of))
	for n, m := range g.of {
		line := []any{m.Namespace, m.Name}
		for _, name := range sortedKeys(m.Dimensions) {
			line = append(line, name, m.Dimensions[name])
		}
		lines[n] = line
	}
	return map[string]any{
		"type": "metric", "width": graphWidth, "height": graphHeight,
		"x": i % graphsInRow * graphWidth, "y": i / graphsInRow * graphHeight,
		"properties": map[string]any{
			"title": g.title, "stat": g.statistic, "period": int(alarms.Period.Seconds()), "region": *awscdk.Aws_REGION(),
			"metrics": lines,
		},
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
