// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/simulation/cost"
)

const runbook = "../docs/runbook"

// kinds lists the kinds of alarms that a stack has. The description of each alarm names the alarm's
// page in the runbook.
func kinds(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, stack := range []string{fullStack, serverlessStack, jobStack} { // only serverlessStack has enrichers
		for _, r := range stackOf(t, stack).all("AWS::CloudWatch::Alarm") {
			_, page, ok := strings.Cut(word(r.Properties["AlarmDescription"]), "See docs/runbook/")
			if !ok {
				t.Errorf("alarm %v does not name its page", r.Properties["AlarmName"])
			}
			if page = strings.TrimSuffix(page, ".md."); !slices.Contains(all, page) {
				all = append(all, page)
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestEveryAlarmHasAPageAndEveryPageAnAlarm(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(runbook, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".md"); name != "README" && name != "stops" {
			pages = append(pages, name)
		}
	}
	if all := kinds(t); !slices.Equal(pages, all) {
		t.Errorf("docs/runbook has pages of %v, the alarms are %v", pages, all)
	}
}

func TestEveryPageOfTheRunbookHasItsParts(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile(filepath.Join(runbook, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds(t) {
		text, err := os.ReadFile(filepath.Join(runbook, kind+".md"))
		if err != nil {
			continue // reported above
		}
		at := 0
		for _, heading := range []string{
			"# " + kind + "\n", "\n## What it means\n", "\n## What to look at\n",
			"\n## How to fix it\n",
		} {
			found := strings.Index(string(text)[at:], heading)
			if found < 0 {
				t.Errorf("%s.md has no %q, or not in its place", kind, strings.TrimSpace(heading))
				break
			}
			at += found
		}
		if fix := string(text)[at:]; !strings.Contains(fix, "`") {
			t.Errorf("%s.md names no command that fixes it", kind)
		}
		if !strings.Contains(string(index), "("+kind+".md)") {
			t.Errorf("docs/runbook/README.md does not list %s.md", kind)
		}
	}
}

// If something must never happen, its alarm goes off at the first occurrence. Expected events have
// no
// alarm.
func TestAlarmsWatchWhatMustNeverHappen(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	counted := make(map[string]resource)
	for _, r := range s.all("AWS::CloudWatch::Alarm") {
		if r.Properties["Namespace"] == metrics.Namespace {
			counted[word(r.Properties["MetricName"])] = r
		}
	}
	for _, name := range []string{
		metrics.Name(journal.Stuck), metrics.Name(journal.SinkNewer), metrics.Name(journal.SinkConfiguration),
		metrics.Name(journal.Blocked), metrics.Name(journal.ClockOff),
		metrics.Name(journal.Schema),
		metrics.Name(journal.LeaseLost), metrics.Name(journal.Parked), metrics.ConfigurationErrors, metrics.Panics,
	} {
		s.same(t, name, counted[name], map[string]any{
			"Statistic": "Sum", "Threshold": 1.0, "EvaluationPeriods": 1.0, "Period": 300.0,
			"ComparisonOperator": "GreaterThanOrEqualToThreshold",
			"TreatMissingData":   "notBreaching", "Dimensions.#0.Name": metrics.DimensionSink,
			"Dimensions.#0.Value": "search",
			"Dimensions.#1.Name":  metrics.DimensionStack, "Dimensions.#1.Value": plainStack, "Dimensions.#2": nil,
		})
		delete(counted, name)
	}
	for _, expected := range []journal.Step{
		journal.Stale, journal.Duplicate, journal.Superseded, journal.AlreadyDead, journal.Skipped, journal.RowRefused,
		journal.Released, journal.Waiting,
		journal.DeleteLost, journal.Extended,
	} {
		if _, ok := counted[metrics.Name(expected)]; ok {
			t.Errorf("%s is expected, and alarms", expected)
		}
	}
	for _, lasting := range []string{
		metrics.Name(journal.CircuitOpened), metrics.Name(journal.Unreachable), metrics.Name(journal.LaunchLost),
		metrics.Name(journal.Failed), metrics.Name(journal.DeadKept), metrics.Name(journal.Returned), metrics.Freshness,
	} {
		if r, ok := counted[lasting]; !ok || number(r.Properties["EvaluationPeriods"]) < 2 {
			t.Errorf("%s: %v, want an alarm when it lasts", lasting, r.Properties)
		}
	}
}

func TestAlarmsOnServicesNameWhatIsThere(t *testing.T) {
	t.Parallel()
	s := stackOf(t, fullStack)
	there := make(map[string]bool)
	for _, r := range s.Resources {
		for _, property := range []string{"TableName", "QueueName", "FunctionName"} {
			if name, ok := r.Properties[property].(string); ok {
				there[name] = true
			}
		}
		for _, index := range items(r.Properties["GlobalSecondaryIndexes"]) {
			there[word(dig(index, "IndexName"))] = true
		}
		if name, ok := r.Properties["StateMachineName"].(string); ok {
			there["arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:"+name] = true
		}
	}
	for id := range s.all("AWS::Pipes::Pipe") {
		there[s.text(map[string]any{"Ref": id})] = true
	}
	watched := 0
	check := func(alarm string, namespace, dimensions any) {
		if namespace == metrics.Namespace {
			return
		}
		for _, d := range items(dimensions) {
			watched++
			if value := s.text(dig(d, "Value")); !there[value] {
				t.Errorf("alarm %s watches %s, which is not in the stack", alarm, value)
			}
		}
	}
	for _, r := range s.all("AWS::CloudWatch::Alarm") {
		name := s.text(r.Properties["AlarmName"])
		if r.Properties["MetricName"] != nil {
			check(name, r.Properties["Namespace"], r.Properties["Dimensions"])
			continue
		}
		for _, q := range items(r.Properties["Metrics"]) {
			if dig(q, "MetricStat") != nil {
				check(name, dig(q, "MetricStat", "Metric", "Namespace"), dig(q, "MetricStat", "Metric", "Dimensions"))
			} else if dig(q, "ReturnData") != true || dig(q, "Expression") == nil {
				t.Errorf("alarm %s: %v returns nothing", name, q)
			}
		}
	}
	if watched < 20 {
		t.Errorf("watched %d dimensions: the test looks in the wrong place", watched)
	}
}

// An alarm notifies the topic that the runbook's table names.
func TestEachAlarmPagesOrMakesATicket(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile(filepath.Join(runbook, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	s := stackOf(t, fullStack)
	seen := make(map[string]bool)
	for _, r := range s.all("AWS::CloudWatch::Alarm") {
		_, page, _ := strings.Cut(word(r.Properties["AlarmDescription"]), "See docs/runbook/")
		page = strings.TrimSuffix(page, ".md.")
		_, row, _ := strings.Cut(string(index), "("+page+".md) | ")
		notifies, _, _ := strings.Cut(row, " |")
		topic := map[string]string{"page": alarmARN, "ticket": ticketARN}[notifies]
		if topic == "" {
			t.Errorf("docs/runbook/README.md says that %s notifies %q, want page or ticket", page, notifies)
		}
		s.same(t, page, r, map[string]any{"AlarmActions": []any{topic}, "OKActions": []any{topic}})
		seen[notifies] = true
	}
	if len(seen) != 2 {
		t.Errorf("the alarms notify %v, want both kinds", seen)
	}
}

// DynamoDB counts throttles of an index with both names as dimensions, not with the table's name
// only.
func TestThrottlesOfTheIndexAlarmToo(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	r := s.named(t, "AWS::CloudWatch::Alarm", "AlarmName", "plain-table-throttled")
	watched := make(map[string]int)
	for _, q := range items(r.Properties["Metrics"]) {
		where := ""
		for _, d := range items(dig(q, "MetricStat", "Metric", "Dimensions")) {
			where += " " + word(dig(d, "Name")) + "=" + word(dig(d, "Value"))
		}
		if where != "" {
			watched[word(dig(q, "MetricStat", "Metric", "MetricName"))+where]++
		}
	}
	for _, event := range []string{"ReadThrottleEvents", "WriteThrottleEvents"} {
		for _, where := range []string{
			" TableName=plain-shards", " GlobalSecondaryIndexName=waiting TableName=plain-shards",
		} {
			if watched[event+where] != 1 {
				t.Errorf("got %v, want %s once", watched, event+where)
			}
		}
	}
}

// The dashboard shows the metrics that the runbook's pages look at first, and every alarm.
func TestTheDashboardShowsWhatTheRunbookLooksAt(t *testing.T) {
	t.Parallel()
	s := stackOf(t, fullStack)
	r := s.named(t, "AWS::CloudWatch::Dashboard", "DashboardName", "full")
	body := s.text(r.Properties["DashboardBody"])
	var board struct{ Widgets []map[string]any }
	if err := json.Unmarshal([]byte(body), &board); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	shown := items(dig(board.Widgets[len(board.Widgets)-1], "properties", "alarms"))
	for _, a := range s.all("AWS::CloudWatch::Alarm") {
		if name := "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:" +
			s.text(a.Properties["AlarmName"]); !slices.Contains(shown, any(name)) {
			t.Errorf("%s is not shown", name)
		}
	}
	for _, metric := range []string{
		metrics.Freshness, "LaunchLost", "ExecutionsFailed", "ExecutionThrottled", "Throttles", "Errors",
		"ApproximateAgeOfOldestMessage", "ConsumedWriteCapacityUnits", "CircuitOpened",
	} {
		if !strings.Contains(body, `"`+metric+`"`) {
			t.Errorf("%s is not shown", metric)
		}
	}
}

// A stack may have seven sinks with 27 alarms each. CloudWatch refuses a dashboard with more than
// 100 alarms in a widget, and the deploy fails.
func TestNoWidgetShowsMoreAlarmsThanCloudWatchTakes(t *testing.T) {
	t.Parallel()
	arns := make([]string, 7*27+1)
	rows, shown := map[any]bool{}, 0
	for _, w := range alarmWidgets(arns, 5) {
		some, _ := dig(w, "properties", "alarms").([]string)
		n := len(some)
		if shown += n; n == 0 || n > 100 {
			t.Errorf("a widget shows %d alarms, want 1 to 100", n)
		}
		rows[fields(w)["y"]] = true
	}
	if shown != len(arns) || len(rows) != 2 || !rows[5*graphHeight] {
		t.Errorf("%d of %d alarms are shown, in the rows %v", shown, len(arns), rows)
	}
}

// A graph of dollars is the sum of the metrics, each weighted with its price from the list that
// `lull cost` uses. The share of writes in time uses the limit that the alarm has.
func TestTheDashboardShowsDollarsAndThePromise(t *testing.T) {
	t.Parallel()
	s := stackOf(t, plainStack)
	body := s.text(s.named(t, "AWS::CloudWatch::Dashboard", "DashboardName", "plain").Properties["DashboardBody"])
	var board struct {
		Widgets []struct {
			Properties struct {
				Title, Stat string
				Period      int
				Metrics     [][]any
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &board); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, w := range board.Widgets {
		p := w.Properties
		if strings.Contains(p.Title, "within the promised") {
			seen++
			alarm := s.named(t, "AWS::CloudWatch::Alarm", "AlarmName", "plain-search-freshness")
			if want := fmt.Sprintf("PR(:%v)", alarm.Properties["Threshold"]); p.Stat != want || len(p.Metrics) != 1 {
				t.Errorf("%s: statistic %s of %v, want %s", p.Title, p.Stat, p.Metrics, want)
			}
		}
		if !strings.Contains(p.Title, "dollars") {
			continue
		}
		seen++
		sum := word(fields(p.Metrics[0][0])["expression"])
		if p.Period != 3600 || strings.Count(sum, "FILL(") != len(p.Metrics)-1 {
			t.Errorf("%s: period %d, %s over %d metrics", p.Title, p.Period, sum, len(p.Metrics)-1)
		}
		for i, line := range p.Metrics[1:] {
			if last := fields(line[len(line)-1]); last["id"] != fmt.Sprintf("m%d", i) || last["visible"] != false {
				t.Errorf("%s: metric %d is %v, want it hidden under its id", p.Title, i, line)
			}
		}
		if strings.HasPrefix(p.Title, "search") && !strings.Contains(sum, "FILL(m2,0)*0.000000200000") {
			t.Errorf("%s: %s, want an invocation of index for $0.20 a million", p.Title, sum)
		}
		if strings.HasPrefix(p.Title, "search") && !strings.HasSuffix(sum, "*0.000100000000") {
			t.Errorf("%s: %s, want a Standard execution for four transitions, $100 a million", p.Title, sum)
		}
	}
	if seen != 3 {
		t.Errorf("saw %d graphs, want dollars of the table and of the sink, and the promise", seen)
	}
}

func TestThresholdsOfAlarmsAreReplacedByName(t *testing.T) {
	t.Parallel()
	s := stackOf(t, fullStack)
	for name, want := range map[string]float64{"full-search-live-age": 1200, "full-search-dead-age": 600} {
		a := s.named(t, "AWS::CloudWatch::Alarm", "AlarmName", name)
		if got := a.Properties["Threshold"]; got != want {
			t.Errorf("%s: threshold %v, want %v", name, got, want)
		}
		says := s.text(a.Properties["AlarmDescription"])
		if replaced := strings.Contains(says, "(with the threshold 1200, not 300)"); replaced != (want == 1200) {
			t.Errorf("%s says %q", name, says)
		}
	}
	p := plainProps()
	p.Thresholds = map[string]float64{"freshnes": 1, "live-age": 0, "drift": 3}
	faults := Faults(p.Validate())
	if len(faults) != 2 || faults[0].Value != "freshnes=1" || faults[1].Value != "live-age=0" ||
		!strings.Contains(faults[0].Fix, "freshness") {
		t.Errorf("got %v, want a fault for the alarm that does not exist and one for 0", faults)
	}
}

// A promise of the design depends on each of these alarms. The test checks metric, threshold and
// periods of the alarms.
func TestAlarmsHaveTheirForm(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]map[string]any{
		// Only a stack that may write while its table is unreachable has this alarm.
		"full-search-outage-writes": {
			"MetricName": metrics.Name(journal.OutageWrite), "Threshold": 1.0, "EvaluationPeriods": 1.0,
		},
		"full-search-archive-lost": {
			"MetricName": metrics.Name(journal.ArchiveLost), "Threshold": 1.0, "EvaluationPeriods": 1.0,
		},
		"plain-search-prune-idle": {
			"ComparisonOperator": "LessThanThreshold", "Threshold": 1.0, "TreatMissingData": "breaching",
			"MetricName": nil, "Metrics.#0.MetricStat.Metric.MetricName": "Invocations",
			"Metrics.#0.MetricStat.Period": 720.0, "Metrics.#1.MetricStat.Metric.MetricName": "Errors",
			"Metrics.#1.MetricStat.Metric.Dimensions.#0.Value": "plain-search-prune",
			"Metrics.#2.Expression":                            "FILL(m0, 0) - FILL(m1, 0)",
		},
		// The alarm is for promise 4. A sink without versions may take longer, by the time in which it
		// may still apply a write. SQS's age of the oldest message ignores messages that were received
		// three times. The metric of receive ignores messages that receive never gets. So the alarm
		// takes the larger of the two ages.
		"plain-search-live-age": {
			"MetricName": nil, "Threshold": 300.0, "Metrics.#0.MetricStat.Metric.Namespace": "AWS/SQS",
			"Metrics.#1.MetricStat.Metric.MetricName": metrics.OldestAge, "Metrics.#1.MetricStat.Stat": "Maximum",
			"Metrics.#2.Expression": "MAX([FILL(m0, 0), FILL(m1, 0)])",
		},
		"plain-search-freshness": {
			"ExtendedStatistic": "p99", "Statistic": nil, "Threshold": 60_000.0,
			"Dimensions.#0.Name": metrics.DimensionLane, "Dimensions.#0.Value": "live",
		},
	} {
		stack, _, _ := strings.Cut(name, "-")
		s := stackOf(t, stack)
		s.same(t, name, s.named(t, "AWS::CloudWatch::Alarm", "AlarmName", name), want)
	}
	for _, r := range stackOf(t, plainStack).all("AWS::CloudWatch::Alarm") {
		if name := r.Properties["MetricName"]; name == metrics.Name(journal.OutageWrite) ||
			name == metrics.Name(journal.ArchiveLost) {
			t.Error("plain alarms on what its settings exclude")
		}
	}
}

// Package cost estimates the bill from the same definitions as the template. The numbers of alarms
// and graphs in the estimate must match the template. Each alarm and graph must use an existing
// metric.
func TestTheBillKnowsTheAlarmsAndGraphs(t *testing.T) {
	t.Parallel()
	s, looked := stackOf(t, plainStack), 0
	for id, r := range s.all("AWS::CloudWatch::Alarm") {
		names := []any{r.Properties["MetricName"]}
		if queries := items(r.Properties["Metrics"]); len(queries) > 0 {
			names = nil
			for _, q := range queries {
				if name := dig(q, "MetricStat", "Metric", "MetricName"); name != nil {
					names = append(names, name)
				}
			}
		}
		looked += len(names)
		for _, name := range names {
			if !metrics.IsMetric(word(name)) {
				t.Errorf("%s looks at %s, which is not a metric", id, name)
			}
		}
	}
	if got := cost.AlarmMetrics(deployable(plainStack)); got != looked {
		t.Errorf("the bill has %d metrics of alarms, the template %d", got, looked)
	}
	if got := len(s.all("AWS::CloudWatch::Dashboard")); got != cost.Dashboards {
		t.Errorf("the bill has %d dashboards, the template %d", cost.Dashboards, got)
	}
	for _, r := range s.all("AWS::CloudWatch::Dashboard") {
		body := s.text(r.Properties["DashboardBody"])
		shown := regexp.MustCompile(`"lull","(\w+)"`).FindAllStringSubmatch(body, -1)
		if len(shown) < 10 {
			t.Errorf("found %d of lull's metrics in the dashboard", len(shown))
		}
		for _, step := range shown {
			if !metrics.IsMetric(step[1]) {
				t.Errorf("the dashboard shows %s, which is not a metric", step[1])
			}
		}
	}
}
