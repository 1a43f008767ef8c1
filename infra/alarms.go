package infra

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/journal"
	"github.com/lullhq/lull/internal/names"
)

// alarm watches for something that must never happen, or must not last. Expected refusals (stale,
// duplicate, a busy lease) are in none.
type alarm struct {
	kind string // the page in docs/runbook
	says string // what is the matter, in one sentence
	// of are the metrics, added up where there are several.
	of []metric
	// minus are taken off it: of is one metric then.
	minus     []metric
	statistic string
	period    time.Duration
	periods   int // how many in a row
	threshold float64
	// below alarms when the value is less than the threshold, and when there is none. Otherwise it
	// alarms from the threshold on, and no value is a good one.
	below bool
}

type metric struct {
	namespace, name string
	dimensions      map[string]string
}

const (
	alarmPeriod = 5 * time.Minute

	// liveAge and bulkAge are the oldest a message may be: a live one is held for half a minute, a
	// bulk one waits for a resync to pass.
	liveAge = 10 * time.Minute
	bulkAge = 6 * time.Hour
	// deadAge is how long a dead letter may wait for dlq; one that waits for a lease waits a minute.
	deadAge = time.Hour
	// freshnessPromise is promise 4's, after one lost invocation. A sink without versions adds what
	// it may still apply.
	freshnessPromise = time.Minute
	// errorsPerPeriod are function errors and failed flights that redelivery heals unnoticed.
	errorsPerPeriod = 5
	// pruneRuns is how many intervals may pass without a run of prune that succeeds.
	pruneRuns = 3
)

// never is an alarm on a metric that counts what must never happen: at once, at the first.
func (s *Sink) never(kind, says, name string) alarm {
	return alarm{
		kind: kind, says: says, of: []metric{s.own(name)}, statistic: "Sum", period: alarmPeriod, periods: 1,
		threshold: 1,
	}
}

// alarms are the sink's.
func (s *Sink) alarms() []alarm {
	c := s.lull.props.Config
	all := []alarm{
		s.never("stuck", "prune found a flight or a row that nothing works on any more", metrics.Name(journal.Stuck)),
		s.never("sink-newer",
			"the sink holds a newer external version than the live lease's: somebody else writes to the index",
			metrics.Name(journal.SinkNewer)),
		s.never("sink-configuration",
			"the sink refuses documents for the sake of its own settings, and they wait until somebody changes them",
			metrics.Name(journal.SinkConfiguration)),
		s.never("clock-off", "the clock of a function, or one that wrote a row, is wrong by more than five minutes",
			metrics.Name(journal.ClockOff)),
		s.never("blocked-by-unknown",
			"a version whose outcome is unknown became a dead letter and keeps older ones out",
			metrics.Name(journal.Blocked)),
		s.never("drift", "a row and the sink differ, and nothing under way explains it", metrics.Name(journal.Drift)),
		s.never("unknown-schema", "a row, manifest, state or dead letter was written by newer code",
			metrics.Name(journal.Schema)),
		s.never("configuration-errors",
			"a function started with settings that it refuses, and answers every message as failed",
			metrics.ConfigurationErrors),
		s.never("lease-lost", "a write was not committed because its lease had ended: an invocation outlived its lease",
			metrics.Name(journal.LeaseLost)),
		s.never("panics", "a batch or a turn ended in a panic", metrics.Panics),
		s.never("dead-letters", "a message became a dead letter", metrics.Name(journal.Parked)),
		lasting(s.never("sink-down", "the sink refuses or does not answer", metrics.Name(journal.CircuitOpened)), 3),
		lasting(s.never("launch-lost", "receive cannot store or start flights: nothing is written",
			metrics.Name(journal.LaunchLost)), 2),
		lasting(s.never("failing", "receive cannot judge events: they come back again and again",
			metrics.Name(journal.Failed)), 3),
		lasting(s.never("dead-kept", "dlq can neither park nor return what is in its queue",
			metrics.Name(journal.DeadKept)), 3),
		lasting(s.never("returned", "SNS or EventBridge cannot deliver, or receive never gets to run",
			metrics.Name(journal.Returned)), 3),
		lasting(s.never("table-unreachable", "receive cannot reach the table", metrics.Name(journal.Unreachable)), 2),
		s.age("live-age", "a message of the live queue is older than 10 minutes", s.names().Queue(s.Name, flight.Live),
			liveAge, s.oldest(flight.Live)),
		s.age("bulk-age", "a message of the bulk queue is older than 6 hours", s.names().Queue(s.Name, flight.Bulk),
			bulkAge, s.oldest(flight.Bulk)),
		s.age("dead-age", "a message of the dead-letter queue is older than an hour: dlq does not judge it",
			s.names().DeadQueue(s.Name), deadAge),
		{
			kind: "in-flight", says: "a queue holds almost as many messages as SQS allows, and will stop delivering",
			of: []metric{s.held(flight.Live), s.held(flight.Bulk)}, statistic: "Maximum", period: time.Minute,
			periods: 2, threshold: float64(c.Queues.MaxInFlight),
		},
		{
			kind: "freshness", says: "one live write in a hundred comes later than promised",
			of: []metric{{
				metrics.Namespace, metrics.Freshness,
				s.dimensions(metrics.DimensionLane, string(flight.Live)),
			}},
			statistic: "p99", period: alarmPeriod, periods: 3,
			threshold: float64((freshnessPromise + c.ApplyDelay(s.Name)).Milliseconds()),
		},
		{
			kind: "function-errors", says: "functions fail or are killed",
			of: s.functions("Errors"), statistic: "Sum", period: alarmPeriod, periods: 1, threshold: errorsPerPeriod,
		},
		{
			kind: "throttles", says: "functions are throttled: the account's or a function's concurrency is used up",
			of: s.functions("Throttles"), statistic: "Sum", period: alarmPeriod, periods: 3, threshold: 1,
		},
		{
			kind:      "flights-failed",
			says:      "flights end before their messages are done, which SQS then delivers again",
			of:        s.executions("ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"),
			statistic: "Sum", period: alarmPeriod, periods: 1, threshold: errorsPerPeriod,
		},
		{
			// An invocation that failed is not a run.
			kind: "prune-idle", says: "prune has not run for three intervals, or fails each time",
			of:        []metric{s.function(names.Prune, "Invocations")},
			minus:     []metric{s.function(names.Prune, "Errors")},
			statistic: "Sum", period: max(pruneRuns*c.Lifecycle.PruneEvery, alarmPeriod), periods: 1, threshold: 1,
			below: true,
		},
	}
	if c.TableOutage == config.TableOutageOpen {
		all = append(all, s.never("outage-writes", "documents were written without asking the table",
			metrics.Name(journal.OutageWrite)))
	}
	return all
}

// alarms are those of what the sinks share.
func (l *Lull) alarms() []alarm {
	table := map[string]string{"TableName": names.Of(l.props.Config).Table()}
	return []alarm{{
		kind: "table-throttled", says: "the table throttles reads or writes",
		of: []metric{
			{"AWS/DynamoDB", "ReadThrottleEvents", table},
			{"AWS/DynamoDB", "WriteThrottleEvents", table},
		},
		statistic: "Sum",
		period:    alarmPeriod, periods: 3, threshold: 1,
	}}
}

// lasting is an alarm that only goes off after so many periods in a row.
func lasting(a alarm, periods int) alarm {
	a.periods = periods
	return a
}

// age is an alarm on the oldest message of a queue, as SQS says and as the functions see it: SQS
// leaves out what was received three times or more, and the functions what they never receive.
func (s *Sink) age(kind, says, queue string, limit time.Duration, seen ...metric) alarm {
	return alarm{
		kind: kind, says: says, of: append([]metric{onQueue("ApproximateAgeOfOldestMessage", queue)}, seen...),
		statistic: "Maximum", period: alarmPeriod, periods: 1, threshold: limit.Seconds(),
	}
}

// oldest is the age of the oldest message that receive saw in a lane.
func (s *Sink) oldest(lane flight.Lane) metric {
	return metric{metrics.Namespace, metrics.OldestAge, s.dimensions(metrics.DimensionLane, string(lane))}
}

// own is a metric that the functions count.
func (s *Sink) own(name string) metric {
	return metric{metrics.Namespace, name, s.dimensions()}
}

// dimensions are those of the sink, and further pairs of name and value.
func (s *Sink) dimensions(more ...string) map[string]string {
	d := map[string]string{metrics.DimensionStack: s.lull.props.Config.Stack, metrics.DimensionSink: s.Name}
	for i := 0; i+1 < len(more); i += 2 {
		d[more[i]] = more[i+1]
	}
	return d
}

func (s *Sink) function(f names.Function, name string) metric {
	return metric{"AWS/Lambda", name, map[string]string{"FunctionName": s.names().Function(s.Name, f)}}
}

func (s *Sink) functions(name string) []metric {
	return every(names.Functions(), func(f names.Function) metric { return s.function(f, name) })
}

func (s *Sink) executions(counts ...string) []metric {
	var all []metric
	for _, name := range counts {
		for _, machine := range s.machineARNs() {
			all = append(all, metric{"AWS/States", name, map[string]string{"StateMachineArn": machine}})
		}
	}
	return all
}

// newAlarms are the alarms of the stack and of each sink.
func (l *Lull) newAlarms() {
	for _, a := range l.alarms() {
		l.newAlarm("", a)
	}
	for _, name := range sinkNames(l.props.Config) {
		for _, a := range l.Sinks[name].alarms() {
			l.newAlarm(name, a)
		}
	}
}

func (l *Lull) newAlarm(sink string, a alarm) {
	scope, subject := l.Construct, "lull "+l.props.Config.Stack
	if sink != "" {
		scope, subject = l.Sinks[sink].scope, subject+", sink "+sink
	}
	props := &awscloudwatch.CfnAlarmProps{
		AlarmName:          jsii.String(names.Of(l.props.Config).Alarm(sink, a.kind)),
		AlarmDescription:   jsii.String(fmt.Sprintf("%s: %s. See docs/runbook/%s.md.", subject, a.says, a.kind)),
		ComparisonOperator: jsii.String("GreaterThanOrEqualToThreshold"),
		EvaluationPeriods:  jsii.Number(float64(a.periods)),
		Threshold:          jsii.Number(a.threshold),
		TreatMissingData:   jsii.String("notBreaching"),
	}
	if a.below {
		props.ComparisonOperator, props.TreatMissingData = jsii.String("LessThanThreshold"), jsii.String("breaching")
	}
	if l.props.AlarmTopic != nil {
		actions := []any{l.props.AlarmTopic.TopicArn()}
		props.AlarmActions, props.OkActions = &actions, &actions
	}
	a.watch(props)
	l.alarmARNs = append(l.alarmARNs, arn("cloudwatch", "alarm:"+*props.AlarmName))
	awscloudwatch.NewCfnAlarm(scope, jsii.String("Alarm-"+a.kind), props)
}

// watch gives the alarm its metric, or the sum of its metrics.
func (a alarm) watch(props *awscloudwatch.CfnAlarmProps) {
	all := append(slices.Clone(a.of), a.minus...)
	if len(all) == 1 {
		m := a.of[0]
		props.Namespace, props.MetricName, props.Period = &m.namespace, &m.name, jsii.Number(a.period.Seconds())
		props.Dimensions = m.pairs()
		if strings.HasPrefix(a.statistic, "p") {
			props.ExtendedStatistic = &a.statistic
		} else {
			props.Statistic = &a.statistic
		}
		return
	}
	filled := make([]string, len(all))
	queries := make([]any, len(all), len(all)+1)
	for i, m := range all {
		id := fmt.Sprintf("m%d", i)
		filled[i] = "FILL(" + id + ", 0)" // without data in a period the sum would have none either
		queries[i] = &awscloudwatch.CfnAlarm_MetricDataQueryProperty{
			Id: &id, ReturnData: jsii.Bool(false),
			MetricStat: &awscloudwatch.CfnAlarm_MetricStatProperty{
				Metric: &awscloudwatch.CfnAlarm_MetricProperty{
					Namespace: &m.namespace, MetricName: &m.name,
					Dimensions: m.pairs(),
				},
				Period: jsii.Number(a.period.Seconds()), Stat: &a.statistic,
			},
		}
	}
	expression := strings.Join(filled[:len(a.of)], " + ")
	if len(a.minus) > 0 {
		expression += " - " + strings.Join(filled[len(a.of):], " - ")
	}
	if a.statistic == "Maximum" {
		expression = "MAX([" + strings.Join(filled, ", ") + "])"
	}
	queries = append(queries, &awscloudwatch.CfnAlarm_MetricDataQueryProperty{
		Id: jsii.String("all"), Expression: &expression, Label: jsii.String(a.kind), ReturnData: jsii.Bool(true),
	})
	props.Metrics = queries
}

// pairs are the dimensions, in a stable order.
func (m metric) pairs() []any {
	return every(sortedKeys(m.dimensions), func(name string) any {
		return &awscloudwatch.CfnAlarm_DimensionProperty{Name: &name, Value: jsii.String(m.dimensions[name])}
	})
}

func onQueue(name, queue string) metric {
	return metric{"AWS/SQS", name, map[string]string{"QueueName": queue}}
}

// held are the messages of a lane that were received and not deleted.
func (s *Sink) held(lane flight.Lane) metric {
	return onQueue("ApproximateNumberOfMessagesNotVisible", s.names().Queue(s.Name, lane))
}
