// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/simulation/price"
)

// A dashboard is 24 columns wide, which is three graphs in a row.
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
	// each is the factor of each metric, for a graph of their weighted sum over an hour. If it is
	// nil, the graph shows the metrics themselves.
	each []float64
}

// newDashboard makes a dashboard with the metrics that the runbook's pages look at first, for the
// stack and for each sink.
func (l *Lull) newDashboard() {
	units := []alarms.Metric{
		alarms.OnTable("ConsumedWriteCapacityUnits", l.props.Config),
		alarms.OnTable("ConsumedReadCapacityUnits", l.props.Config),
	}
	graphs := []graph{
		{title: "table: units", statistic: "Sum", of: units},
		{
			title: "table: dollars an hour, by list price", statistic: "Sum", of: units,
			each: []float64{price.USEast1.WriteUnits / million, price.USEast1.ReadUnits / million},
		},
	}
	for _, name := range sinkNames(l.props.Config) {
		graphs = append(graphs, l.Sinks[name].graphs()...)
	}
	var widgets []any
	for i, g := range graphs {
		widgets = append(widgets, g.widget(i))
	}
	widgets = append(widgets, alarmWidgets(l.alarmARNs, (len(graphs)+graphsInRow-1)/graphsInRow)...)
	body, err := json.Marshal(map[string]any{"widgets": widgets})
	if err != nil {
		panic(fmt.Errorf("write dashboard: %w", err)) // cannot happen: texts and numbers can always be encoded
	}
	awscloudwatch.NewCfnDashboard(l.Construct, jsii.String("Dashboard"), &awscloudwatch.CfnDashboardProps{
		DashboardName: jsii.String(names.Of(l.props.Config).Dashboard()),
		DashboardBody: jsii.String(string(body)),
	})
}

// alarmsInWidget is how many alarms CloudWatch allows in an alarm widget. A stack of four sinks has
// more alarms. AWS documents the limit on the page "Dashboard Body Structure and Syntax".
const alarmsInWidget = 100

// alarmWidgets returns widgets that show the state of the alarms. The first widget is in the row of
// the dashboard with this number.
func alarmWidgets(arns []string, row int) (widgets []any) {
	for some := range slices.Chunk(arns, alarmsInWidget) {
		widgets = append(widgets, map[string]any{
			"type": "alarm", "width": graphsInRow * graphWidth, "height": graphHeight,
			"x": 0, "y": (row + len(widgets)) * graphHeight,
			"properties": map[string]any{"title": "alarms", "alarms": some},
		})
	}
	return widgets
}

func (s *Sink) graphs() []graph {
	w := s.alarmSink()
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
	promised := w.Promise().Milliseconds()
	return []graph{
		{title: s.Name + ": freshness, p99 in ms", statistic: "p99", of: fresh},
		{
			title:     fmt.Sprintf("%s: %% of live writes within the promised %d ms", s.Name, promised),
			statistic: fmt.Sprintf("PR(:%d)", promised), of: fresh[:1],
		},
		{title: s.Name + ": what became of events", statistic: "Sum", of: steps(journal.Received, journal.Committed, journal.Kept,
			journal.Superseded, journal.Stale, journal.Duplicate)},
		{title: s.Name + ": flights", statistic: "Sum", of: append(steps(journal.LaunchLost), w.Executions("ExecutionsStarted",
			"ExecutionsFailed", "ExecutionsTimedOut", "ExecutionThrottled")...)},
		{title: s.Name + ": what must not be", statistic: "Sum", of: steps(journal.Stuck, journal.SinkNewer,
			journal.SinkConfiguration, journal.Blocked, journal.Schema,
			journal.LeaseLost, journal.ArchiveLost, journal.Parked)},
		{title: s.Name + ": the sink's health", statistic: "Sum", of: steps(journal.CircuitOpened, journal.OutcomeUnknown, journal.Released,
			journal.Rejected)},
		{title: s.Name + ": fetched documents", statistic: "Sum", of: steps(journal.Fetched, journal.FetchFailed)},
		{title: s.Name + ": enrichers", statistic: "Sum", of: steps(journal.Enriched, journal.EnrichFailed, journal.EnrichAway)},
		{title: s.Name + ": messages waiting", statistic: "Maximum", of: queues("ApproximateNumberOfMessagesVisible")},
		{title: s.Name + ": messages held", statistic: "Maximum", of: queues("ApproximateNumberOfMessagesNotVisible")},
		{title: s.Name + ": oldest message, s", statistic: "Maximum", of: queues("ApproximateAgeOfOldestMessage")},
		{title: s.Name + ": function errors", statistic: "Sum", of: w.Functions("Errors")},
		{title: s.Name + ": throttles", statistic: "Sum", of: w.Functions("Throttles")},
		{title: s.Name + ": function time, p99 in ms", statistic: "p99", of: w.Functions("Duration")},
		{title: s.Name + ": concurrency", statistic: "Maximum", of: w.Functions("ConcurrentExecutions")},
		s.dollars(),
	}
}

const million = 1e6

// dollars returns a graph of what the sink's functions and flights cost in an hour, by list price.
// It includes the costs that grow with the load and that CloudWatch counts. `lull cost` also
// includes queues and logs.
func (s *Sink) dollars() graph {
	w, list := s.alarmSink(), price.USEast1
	g := graph{title: s.Name + ": dollars an hour of functions and flights, by list price", statistic: "Sum"}
	add := func(m alarms.Metric, each float64) { g.of, g.each = append(g.of, m), append(g.each, each) }
	for _, f := range names.Functions() {
		add(w.Function(f, "Invocations"), list.Invocations/million)
		add(w.Function(f, "Duration"), float64(f.MegabytesIn(s.lull.props.Config))/1024/1000*list.LambdaGBSecond) // ms
	}
	machine := func(kind config.FlightKind, name string) alarms.Metric {
		return alarms.Metric{Namespace: "AWS/States", Name: name, Dimensions: map[string]string{
			"StateMachineArn": s.machineARN(kind),
		}}
	}
	add(machine(config.FlightExpress, "ExecutionsStarted"), list.ExpressStarts/million)
	add(machine(config.FlightExpress, "ExecutionTime"), expressMemory/1024/1000*list.ExpressGBSecond) // ms
	add(machine(config.FlightStandard, "ExecutionsStarted"), standardTransitions*list.Transitions/million)
	return g
}

// expressMemory is the memory that AWS bills for an Express execution with a small state, in MB.
const expressMemory = 64.0

// standardTransitions is how many transitions a Standard execution of one turn has: Hold, Index,
// Remaining and Done. Each further turn adds three.
const standardTransitions = 4

// widget returns the graph in CloudWatch's format. i is its position on the dashboard.
func (g graph) widget(i int) map[string]any {
	lines := make([]any, len(g.of))
	for n, m := range g.of {
		line := []any{m.Namespace, m.Name}
		for _, name := range sortedKeys(m.Dimensions) {
			line = append(line, name, m.Dimensions[name])
		}
		if g.each != nil {
			line = append(line, map[string]any{"id": fmt.Sprintf("m%d", n), "visible": false})
		}
		lines[n] = line
	}
	period := alarms.Period
	if g.each != nil {
		period = time.Hour
		terms := make([]string, len(g.each))
		for n, worth := range g.each {
			terms[n] = fmt.Sprintf("FILL(m%d,0)*%.12f", n, worth)
		}
		lines = append([]any{[]any{map[string]any{"expression": strings.Join(terms, "+"), "label": "dollars", "id": "sum"}}},
			lines...)
	}
	return map[string]any{
		"type": "metric", "width": graphWidth, "height": graphHeight,
		"x": i % graphsInRow * graphWidth, "y": i / graphsInRow * graphHeight,
		"properties": map[string]any{
			"title": g.title, "stat": g.statistic, "period": int(period.Seconds()), "region": *awscdk.Aws_REGION(),
			"metrics": lines,
		},
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
