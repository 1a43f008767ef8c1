// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"fmt"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/deploy/names"
)

// alarmSink returns the sink in the form of package alarms, which lists the metrics and alarms of a
// sink.
func (s *Sink) alarmSink() alarms.Sink {
	return alarms.Sink{Config: s.lull.props.Config, Name: s.Name, Machines: s.machineARNs()}
}

// newAlarms makes the alarms of the stack and of each sink.
func (l *Lull) newAlarms() {
	for _, a := range alarms.OfStack(l.props.Config) {
		l.newAlarm("", a)
	}
	for _, name := range sinkNames(l.props.Config) {
		for _, a := range l.Sinks[name].alarmSink().Alarms() {
			l.newAlarm(name, a)
		}
	}
}

func (l *Lull) newAlarm(sink string, a alarms.Alarm) {
	scope, subject := l.Construct, "lull "+l.props.Config.Stack
	if sink != "" {
		scope, subject = l.Sinks[sink].scope, l.Sinks[sink].subject()
	}
	l.alarm(scope, subject, names.Of(l.props.Config).Alarm(sink, a.Kind), a)
}

// subject returns the beginning of the description of each alarm of the sink.
func (s *Sink) subject() string { return "lull " + s.lull.props.Config.Stack + ", sink " + s.Name }

// alarm makes one alarm within scope. The description of the alarm begins with subject.
func (l *Lull) alarm(scope constructs.Construct, subject, name string, a alarms.Alarm) {
	if given, ok := l.props.Thresholds[a.Kind]; ok {
		a.Says += fmt.Sprintf(" (with the threshold %v, not %v)", given, a.Threshold)
		a.Threshold = given
	}
	props := &awscloudwatch.CfnAlarmProps{
		AlarmName:          &name,
		AlarmDescription:   jsii.String(fmt.Sprintf("%s: %s. See docs/runbook/%s.md.", subject, a.Says, a.Kind)),
		ComparisonOperator: jsii.String("GreaterThanOrEqualToThreshold"),
		EvaluationPeriods:  jsii.Number(float64(a.Periods)),
		Threshold:          jsii.Number(a.Threshold),
		TreatMissingData:   jsii.String("notBreaching"),
	}
	if a.Below {
		props.ComparisonOperator, props.TreatMissingData = jsii.String("LessThanThreshold"), jsii.String("breaching")
	}
	topic := l.props.AlarmTopic
	if a.Ticket() && l.props.TicketTopic != nil {
		topic = l.props.TicketTopic
	}
	if topic != nil {
		actions := []any{topic.TopicArn()}
		props.AlarmActions, props.OkActions = &actions, &actions
	}
	setMetrics(a, props)
	l.alarmARNs = append(l.alarmARNs, arn("cloudwatch", "alarm:"+name))
	awscloudwatch.NewCfnAlarm(scope, jsii.String("Alarm-"+a.Kind), props)
}

// setMetrics sets the metric that the alarm watches, or an expression over several metrics.
func setMetrics(a alarms.Alarm, props *awscloudwatch.CfnAlarmProps) {
	all := a.Metrics()
	if len(all) == 1 {
		m := all[0]
		props.Namespace, props.MetricName, props.Period = &m.Namespace, &m.Name, jsii.Number(a.Period.Seconds())
		props.Dimensions = pairs(m)
		if strings.HasPrefix(a.Statistic, "p") {
			props.ExtendedStatistic = &a.Statistic
		} else {
			props.Statistic = &a.Statistic
		}
		return
	}
	queries := make([]any, len(all), len(all)+1)
	for i, m := range all {
		queries[i] = &awscloudwatch.CfnAlarm_MetricDataQueryProperty{
			Id: jsii.String(fmt.Sprintf("m%d", i)), ReturnData: jsii.Bool(false),
			MetricStat: &awscloudwatch.CfnAlarm_MetricStatProperty{
				Metric: &awscloudwatch.CfnAlarm_MetricProperty{
					Namespace: &m.Namespace, MetricName: &m.Name,
					Dimensions: pairs(m),
				},
				Period: jsii.Number(a.Period.Seconds()), Stat: &a.Statistic,
			},
		}
	}
	queries = append(queries, &awscloudwatch.CfnAlarm_MetricDataQueryProperty{
		Id: jsii.String("all"), Expression: jsii.String(a.Expression()), Label: jsii.String(a.Kind),
		ReturnData: jsii.Bool(true),
	})
	props.Metrics = queries
}

// pairs returns the metric's dimensions in a stable order.
func pairs(m alarms.Metric) []any {
	return every(sortedKeys(m.Dimensions), func(name string) any {
		return &awscloudwatch.CfnAlarm_DimensionProperty{Name: &name, Value: jsii.String(m.Dimensions[name])}
	})
}
