// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"maps"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/setting"
)

// Alarm describes a CloudWatch alarm: on something that must never happen, or that must not last.
// An expected refusal (a stale or duplicate event, a busy lease) never fires an alarm.
type Alarm struct {
	Kind string // the name of the alarm's page in docs/runbook
	Says string // what is wrong, in one sentence
	// Of are the metrics that the alarm watches. The alarm adds up several metrics. If Statistic is
	// Maximum, the alarm uses the greatest value.
	Of []Metric
	// Minus are metrics to subtract from Of. If Minus is set, Of has only one metric.
	Minus     []Metric
	Statistic string // Sum, Maximum or p99
	Period    time.Duration
	Periods   int // how many periods in a row must reach the threshold
	Threshold float64
	// Below says that the alarm fires if the value is less than the threshold, or if there is no
	// value. Without Below, the alarm fires if the value reaches the threshold, and not if there is
	// no value.
	Below bool
}

// tickets are the alarms that can wait for the next working day: nothing becomes worse until then,
// or another alarm goes off if it does.
var tickets = map[string]bool{
	"archive-lost": true, "blocked-by-unknown": true, "bulk-age": true, "dead-age": true, "dead-kept": true,
	"dead-letters": true, "drift": true, "flights-failed": true, "function-errors": true, "job-idle": true,
	"lease-lost":    true,
	"outage-writes": true, "prune-idle": true, "returned": true,
	"table-throttled": true, "throttles": true,
}

// Ticket reports whether the alarm can wait for the next working day. Other alarms page somebody.
func (a Alarm) Ticket() bool { return tickets[a.Kind] }

const (
	// Period is the period of most alarms. Period is also the time that one point in the graphs of
	// the dashboard covers.
	Period = 5 * time.Minute

	// liveAge is the greatest allowed age of a live message, and bulkAge of a bulk message. If a
	// sink's longest hold and waitingAge together exceed liveAge, their sum is the greatest allowed
	// age of the sink's live messages. A bulk message may wait until a resync has finished.
	liveAge    = 5 * time.Minute
	waitingAge = 4 * time.Minute
	bulkAge    = 6 * time.Hour
	// deadAge is how long a message may wait in the dead-letter queue. dlq may have to wait a
	// minute for a lease.
	deadAge = 10 * time.Minute
	// errorsPerPeriod is how many function errors or failed flights in a period fire an alarm. If
	// there are fewer, SQS delivers the messages again, and no action is needed.
	errorsPerPeriod = 5
)

// Promise returns how old a live event may be when it is written, by promise 4 of the design. The
// returned time is for the collection with the longest window.
func (s Sink) Promise() time.Duration { return s.Config.Recovered(s.Name) }

// never returns an alarm on a metric that must stay zero. The first count fires the alarm.
func (s Sink) never(kind, says, name string) Alarm {
	return Alarm{
		Kind: kind, Says: says, Of: []Metric{s.Own(name)}, Statistic: "Sum", Period: Period, Periods: 1,
		Threshold: 1,
	}
}

// Alarms returns the alarms of the sink.
func (s Sink) Alarms() []Alarm {
	c := s.Config
	oldest := max(liveAge, c.LongestHold(s.Name)+waitingAge).Truncate(time.Second)
	all := []Alarm{
		s.never("stuck", "prune found a flight or a row that nothing works on any more", metrics.Name(journal.Stuck)),
		s.never("sink-newer",
			"the sink has a newer external version than the live lease: another program writes to the index",
			metrics.Name(journal.SinkNewer)),
		s.never("sink-configuration",
			"the sink refuses documents because of its own settings: they wait until the settings are changed",
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
		s.never(
			"lease-lost",
			"a write was not committed because its lease had ended: an invocation outlived its lease",
			metrics.Name(journal.LeaseLost),
		),
		s.never("panics", "a batch or a turn ended in a panic", metrics.Panics),
		s.never("dead-letters", "a message became a dead letter", metrics.Name(journal.Parked)),
		lasting(s.never("sink-down", "the sink refuses or does not answer", metrics.Name(journal.CircuitOpened)), 2),
		lasting(s.never("launch-lost", "receive cannot store or start flights: nothing is written",
			metrics.Name(journal.LaunchLost)), 2),
		lasting(s.never("failing", "receive cannot process events: SQS delivers them again and again",
			metrics.Name(journal.Failed)), 2),
		lasting(s.never("dead-kept", "dlq can neither park nor return the messages in its queue",
			metrics.Name(journal.DeadKept)), 3),
		lasting(s.never("returned", "SNS or EventBridge cannot deliver, or receive never gets to run",
			metrics.Name(journal.Returned)), 3),
		lasting(s.never("table-unreachable", "receive cannot reach the table", metrics.Name(journal.Unreachable)), 2),
		s.age(
			"live-age",
			"a message of the live queue is older than "+setting.FormatDuration(oldest),
			names.Of(s.Config).Queue(s.Name, flight.Live),
			oldest,
			s.ByLane(metrics.OldestAge, flight.Live),
		),
		s.age(
			"bulk-age",
			"a message of the bulk queue is older than 6 hours",
			names.Of(s.Config).Queue(s.Name, flight.Bulk),
			bulkAge,
			s.ByLane(metrics.OldestAge, flight.Bulk),
		),
		s.age("dead-age", "a message of the dead-letter queue is older than 10 minutes: dlq does not judge it",
			names.Of(s.Config).DeadQueue(s.Name), deadAge),
		{
			Kind: "in-flight", Says: "a queue holds almost as many messages as SQS allows, and will stop delivering",
			Of: []Metric{s.inFlight(flight.Live), s.inFlight(flight.Bulk)}, Statistic: "Maximum", Period: time.Minute,
			Periods: 2, Threshold: float64(c.Queues.MaxInFlight),
		},
		{
			Kind: "freshness", Says: "one live write in a hundred is later than promised",
			Of:        []Metric{s.ByLane(metrics.Freshness, flight.Live)},
			Statistic: "p99", Period: Period, Periods: 3,
			Threshold: float64(s.Promise().Milliseconds()),
		},
		{
			Kind: "function-errors", Says: "functions fail or are killed",
			Of: s.Functions("Errors"), Statistic: "Sum", Period: Period, Periods: 1, Threshold: errorsPerPeriod,
		},
		{
			Kind: "throttles", Says: "functions are throttled: the account's or a function's concurrency is used up",
			Of: s.Functions("Throttles"), Statistic: "Sum", Period: Period, Periods: 2, Threshold: 1,
		},
		{
			Kind: "flights-failed",
			Says: "flights end before their messages are done, which SQS then delivers again",
			// Aborted executions do not count, because only a person aborts an execution.
			Of:        s.Executions("ExecutionsFailed", "ExecutionsTimedOut"),
			Statistic: "Sum", Period: Period, Periods: 1, Threshold: errorsPerPeriod,
		},
		idle("prune-idle", "two runs of prune in a row are missing, or failed", s.Function(names.Prune, "Invocations"),
			s.Function(names.Prune, "Errors"), c.Lifecycle.PruneEvery),
	}
	if c.TableOutage == config.TableOutageOpen {
		all = append(all, s.never("outage-writes", "documents were written without asking the table",
			metrics.Name(journal.OutageWrite)))
	}
	if c.Archive.Keep > 0 {
		all = append(all, s.never("archive-lost", "receive could not archive messages: lull replay cannot send them",
			metrics.Name(journal.ArchiveLost)))
	}
	if len(c.Enriched(s.Name)) > 0 {
		all = append(all, lasting(s.never("enricher-away",
			"an enricher does not answer, or has too much to do: its documents wait", metrics.Name(journal.EnrichAway)), 2))
	}
	if every := c.Canary.Every; slices.Contains(c.Canaries(), s.Name) {
		canary := s.never("canary", "the canary's document does not go through the sink", metrics.CanaryFailed)
		// The period is longer than the interval. Otherwise the alarm would go off again at each run.
		canary.Period = min(max((every*5/4).Truncate(time.Minute), Period), longest)
		all = append(all, canary)
	}
	return all
}

// longest is the longest period of an alarm.
const longest = 24 * time.Hour

// idle returns an alarm on a function that ran, without an error, less often than once in two and a
// half intervals. They contain at least two runs, so that one run may fail.
func idle(kind, says string, runs, errors Metric, every time.Duration) Alarm {
	span := max((every * 5 / 2).Truncate(time.Minute), Period)
	periods := int((span + longest - 1) / longest)
	return Alarm{
		Kind: kind, Says: says, Of: []Metric{runs}, Minus: []Metric{errors}, Statistic: "Sum",
		Period: min(span, longest), Periods: periods, Threshold: 1, Below: true,
	}
}

// OfStack returns the alarms on resources that all sinks share.
func OfStack(c *config.Config) []Alarm {
	all := []Alarm{{
		Kind: "table-throttled", Says: "the table or its index throttles reads or writes",
		Of: []Metric{
			OnTable("ReadThrottleEvents", c), OnTable("WriteThrottleEvents", c),
			OnIndex("ReadThrottleEvents", c), OnIndex("WriteThrottleEvents", c),
		},
		Statistic: "Sum", Period: Period, Periods: 3, Threshold: 1,
	}}
	if works := slices.Collect(maps.Values(c.Works())); len(works) > 0 {
		all = append(all, idle("job-idle", "two runs of the function job in a row are missing, or failed",
			OnJob("Invocations", c), OnJob("Errors", c), slices.Min(works)))
	}
	return all
}

// OfSearchable returns the alarms on the function behind the stack's URL. There are none without
// the URL. The alarms have the kinds of the alarms on a sink's functions.
func OfSearchable(c *config.Config) []Alarm {
	if c.SearchableCalls == nil {
		return nil
	}
	of := func(metric string) []Metric {
		return []Metric{{"AWS/Lambda", metric, map[string]string{"FunctionName": names.Of(c).Searchable()}}}
	}
	return []Alarm{
		{
			// A failed or killed invocation is an answer 502, and a table that does not answer is a 503.
			// https://docs.aws.amazon.com/lambda/latest/dg/urls-monitoring.html
			Kind: "function-errors", Says: "the function searchable fails, is killed or cannot answer", Of: of("Url5xxCount"),
			Statistic: "Sum", Period: Period, Periods: 1, Threshold: errorsPerPeriod,
		},
		{
			Kind: "throttles", Says: "more questions wait at the URL than searchableCalls allows", Of: of("Throttles"),
			Statistic: "Sum", Period: Period, Periods: 2, Threshold: 1,
		},
	}
}

// OfPipe returns the alarms on a pipe that sends messages to a queue: the pipe fails, or it sends
// no message for the time idle. If idle is 0, there is no second alarm.
func OfPipe(pipe string, idle time.Duration) []Alarm {
	all := []Alarm{{
		Kind: "pipe-failing", Says: "a pipe cannot deliver the records that it reads, or stops retrying them",
		Of: []Metric{
			OnPipe("ExecutionFailed", pipe), OnPipe("ExecutionPartiallyFailed", pipe), OnPipe("ExecutionTimeout", pipe),
		},
		Statistic: "Sum", Period: Period, Periods: 2, Threshold: 1,
	}}
	if idle > 0 {
		all = append(all, Alarm{
			Kind: "pipe-idle", Says: "a pipe delivers nothing: it is stopped, cannot read, or its source has no records",
			Of: []Metric{OnPipe("EventCount", pipe)}, Statistic: "Sum", Period: idle, Periods: 1, Threshold: 1, Below: true,
		})
	}
	return all
}

// lasting changes an alarm so that it fires only after the given number of periods in a row.
func lasting(a Alarm, periods int) Alarm {
	a.Periods = periods
	return a
}

// age returns an alarm on the age of the oldest message of a queue. The method uses the metric of
// SQS and the metric of the functions. The metric of SQS omits messages that were received three
// times or more. The metric of the functions omits messages that they never receive.
func (s Sink) age(kind, says, queue string, limit time.Duration, seen ...Metric) Alarm {
	return Alarm{
		Kind: kind, Says: says, Of: append([]Metric{OnQueue("ApproximateAgeOfOldestMessage", queue)}, seen...),
		Statistic: "Maximum", Period: Period, Periods: 1, Threshold: limit.Seconds(),
	}
}

// inFlight returns the metric for the messages of a lane that were received and not deleted.
func (s Sink) inFlight(lane flight.Lane) Metric {
	return OnQueue("ApproximateNumberOfMessagesNotVisible", names.Of(s.Config).Queue(s.Name, lane))
}
