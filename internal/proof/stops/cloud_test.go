// SPDX-License-Identifier: Apache-2.0

package stops

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/alarms"
)

// cloud simulates CloudWatch: metrics by the minute, and alarms over them. AWS documents the rules
// in two places. "Configuring how CloudWatch alarms treat missing data" says that missing points
// are "good" for notBreaching and "bad" for breaching. "EvaluationWindow" in the API reference says
// that the window slides each time the alarm is evaluated. If the period is a minute or more, the
// alarm is evaluated each minute.
type cloud struct {
	metrics map[string]map[int64][]float64 // values by minute since 1970
}

func key(m alarms.Metric) string {
	k := m.Namespace + " " + m.Name
	for _, d := range slices.Sorted(maps.Keys(m.Dimensions)) {
		k += " " + d + "=" + m.Dimensions[d]
	}
	return k
}

func (c *cloud) put(at time.Time, m alarms.Metric, values ...float64) {
	if c.metrics == nil {
		c.metrics = map[string]map[int64][]float64{}
	}
	k, minute := key(m), at.Unix()/60
	if c.metrics[k] == nil {
		c.metrics[k] = map[int64][]float64{}
	}
	c.metrics[k][minute] = append(c.metrics[k][minute], values...)
}

// Write reads a line of the embedded metric format, as CloudWatch Logs does.
func (c *cloud) Write(line []byte) (int, error) {
	var fields map[string]json.RawMessage
	var head struct {
		AWS struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name string }
			}
		} `json:"_aws"`
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		return 0, err
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return 0, err
	}
	for _, d := range head.AWS.CloudWatchMetrics {
		for _, set := range d.Dimensions {
			dimensions := map[string]string{}
			for _, name := range set {
				dimensions[name] = strings.Trim(string(fields[name]), `"`)
			}
			for _, m := range d.Metrics {
				var values []float64
				if json.Unmarshal(fields[m.Name], &values) != nil {
					values = make([]float64, 1)
					if err := json.Unmarshal(fields[m.Name], &values[0]); err != nil {
						return 0, err
					}
				}
				c.put(
					time.UnixMilli(head.AWS.Timestamp),
					alarms.Metric{Namespace: d.Namespace, Name: m.Name, Dimensions: dimensions},
					values...)
			}
		}
	}
	return len(line), nil
}

// values returns the values of a metric in the window of minutes (from, to].
func (c *cloud) values(m alarms.Metric, from, to int64) []float64 {
	var all []float64
	of := c.metrics[key(m)]
	for minute := from; minute < to; minute++ {
		all = append(all, of[minute]...)
	}
	return all
}

// point returns the data point of an alarm over a window. there says whether the window has data.
func (c *cloud) point(a alarms.Alarm, from, to int64) (value float64, there bool) {
	one := func(m alarms.Metric) float64 {
		all := c.values(m, from, to)
		if len(all) == 0 {
			return 0 // as FILL(m, 0) does
		}
		there = true
		slices.Sort(all)
		switch a.Statistic {
		case "Maximum":
			return all[len(all)-1]
		case "p99":
			return all[int(math.Ceil(0.99*float64(len(all))))-1]
		case "Sum":
			sum := 0.0
			for _, v := range all {
				sum += v
			}
			return sum
		}
		panic("no rule for " + a.Statistic)
	}
	for _, m := range a.Of {
		if v := one(m); a.Statistic == "Maximum" {
			value = max(value, v)
		} else {
			value += v
		}
	}
	for _, m := range a.Minus {
		value -= one(m)
	}
	return value, there
}

// goesOff reports whether the alarm is in the state ALARM at the end of a minute. If data points
// are missing, CloudWatch looks further back, until it has as many real points as the alarm has
// periods. more is how many periods further it looks at the most.
func (c *cloud) goesOff(a alarms.Alarm, at time.Time, more int) bool {
	end, minutes := at.Unix()/60, int64(a.Period/time.Minute)
	breaching, real, missing := 0, 0, 0
	for n := range a.Periods + more {
		to := end - int64(n)*minutes
		value, there := c.point(a, to-minutes, to)
		switch {
		case !there && n < a.Periods:
			missing++
		case !there || real == a.Periods:
		case a.Below == (value < a.Threshold):
			breaching, real = breaching+1, real+1
		default:
			real++
		}
	}
	if a.Below && real < a.Periods {
		breaching += missing
	}
	return breaching >= a.Periods
}

// TestAlarmsAreEvaluatedAsDocumented checks the examples of AWS's pages, and further examples that
// the results of this package depend on.
func TestAlarmsAreEvaluatedAsDocumented(t *testing.T) {
	t.Parallel()
	count := alarms.Metric{Namespace: "lull", Name: "Lost", Dimensions: map[string]string{"Sink": "search"}}
	start := time.Unix(1_800_000_000/300*300, 0)
	sum := alarms.Alarm{
		Of:        []alarms.Metric{count},
		Statistic: "Sum",
		Period:    5 * time.Minute,
		Periods:   2,
		Threshold: 1,
	}
	idle := alarms.Alarm{
		Of:        []alarms.Metric{count},
		Statistic: "Sum",
		Period:    5 * time.Minute,
		Periods:   1,
		Threshold: 1,
		Below:     true,
	}
	for _, tt := range []struct {
		name string
		a    alarms.Alarm
		at   []int // the minutes in which the metric has a value
		more int
		want []int // the minutes, of twenty, at whose end the alarm is on, as pairs of first and last minute
	}{
		{"no data is good", sum, nil, 0, nil},
		{"one period is not two", sum, []int{1}, 0, nil},
		{"windows slide by the minute", sum, []int{1, 4, 8}, 0, []int{7, 13}},
		{"where data is missing, older data counts", sum, []int{1, 12}, 2, []int{13, 20}},
		{"no data is bad", idle, []int{3, 4}, 0, []int{10, 20}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var c cloud
			for _, m := range tt.at {
				c.put(start.Add(time.Duration(m)*time.Minute), count, 1)
			}
			var on []int
			for m := 5; m <= 20; m++ {
				if c.goesOff(tt.a, start.Add(time.Duration(m)*time.Minute), tt.more) {
					on = append(on, m)
				}
			}
			if len(on) > 0 {
				on = []int{on[0], on[len(on)-1]}
			}
			if !slices.Equal(on, tt.want) {
				t.Errorf("on in %v, want %v", on, tt.want)
			}
		})
	}
}

// TestTheEmbeddedMetricFormatIsRead checks that the values in lines of the format are read as they
// were counted.
func TestTheEmbeddedMetricFormatIsRead(t *testing.T) {
	t.Parallel()
	var c cloud
	if _, err := fmt.Fprint(&c, `{"Stack":"lull","Sink":"search","Lane":"live","Committed":3,"Freshness":[10,20],`+
		`"_aws":{"Timestamp":60000,"CloudWatchMetrics":[`+
		`{"Namespace":"lull","Dimensions":[["Stack","Sink"]],"Metrics":[{"Name":"Committed"}]},`+
		`{"Namespace":"lull","Dimensions":[["Stack","Sink","Lane"]],"Metrics":[{"Name":"Freshness"}]}]}}`); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string][]float64{
		"lull Committed Sink=search Stack=lull":           {3},
		"lull Freshness Lane=live Sink=search Stack=lull": {10, 20},
	} {
		if got := c.metrics[k][1]; !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", k, got, want)
		}
	}
}
