// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
)

// maxStatements is how many statements lull allows in the policy of a queue. One of them demands
// TLS.
const maxStatements = 20

// checkUpstreams reports upstreams for which the policy of a queue has no space. Each upstream
// needs a statement in the policy of its queue. An upstream that may send undeliverable messages to
// the dead-letter queue also needs a statement in the policy of that queue.
func (p *Props) checkUpstreams(fs *faultList) {
	statements := make(map[string]int)
	for _, u := range p.Upstreams {
		if u.Pipe != nil {
			continue // a pipe's role has the right, so the queue's policy needs no statement
		}
		for _, sink := range u.sinks(p.Config) {
			statements["sinks."+sink+", lane "+string(u.lane())]++
			if u.Sender == nil {
				statements["sinks."+sink+", dead letters"]++
			}
		}
	}
	for _, queue := range slices.Sorted(maps.Keys(statements)) {
		if n := statements[queue] + 1; n > maxStatements {
			fs.add("Upstreams", queue, "would have a policy of "+strconv.Itoa(n)+" statements: SQS takes "+
				strconv.Itoa(maxStatements), "send through fewer topics, or let an account send instead of its roles")
		}
	}
	for i, u := range p.Upstreams {
		at := fmt.Sprintf("Upstreams[%d]", i)
		if _, ok := p.Config.Sinks[u.sink(p.Config)]; !ok {
			fs.add(at+".Sink", u.Sink, "is not the name of a sink",
				"write one of "+strings.Join(sinkNames(p.Config), ", "))
		}
		if !slices.Contains([]flight.Lane{flight.Live, flight.Bulk}, u.lane()) {
			fs.add(at+".Lane", string(u.Lane), "is not a lane", "write live or bulk")
		}
		for _, sink := range u.sinks(p.Config) {
			if s := p.Config.Sinks[sink]; s.LiveQueue != "" && u.lane() == flight.Live && u.Pipe == nil {
				fs.add(at, s.LiveQueue, "is a queue that exists already: a policy of this stack would replace its own",
					"let its own stack say who may send to it, and leave this upstream out")
			}
		}
		if all := p.Config.Companions(u.sink(p.Config)); u.singleQueue() && len(all) > 1 {
			fs.add(at+".Sink", all[0],
				"would be the only one to get events for the sinks "+strings.Join(all, ", ")+": the other sinks never "+
					"would", "put an SNS topic or an event bus in between, and name it: Topic or Bus (LULL_TOPICS, "+
					"LULL_EVENT_BUS)")
		}
		if u.Sender != nil && u.SenderARN == "" && isAnybody(u.Sender) {
			fs.add(at+".SenderARN", "", "is empty, so every account may send through the service",
				"set it to the ARN of the resource whose events the service sends, such as the bucket; or make Sender a role or "+
					"an account")
		}
		fs.exactlyOne(at, "Topic, Bus, Pipe and Sender", u.Topic != nil, u.Bus != nil, u.Pipe != nil, u.Sender != nil)
		if (u.Bus == nil) != (u.Pattern == nil) {
			fs.add(at+".Pattern", "", "and Bus belong together",
				"set both: without a pattern every event of the bus would be sent")
		}
	}
}

// checkTopics reports match rules that can never match, and topics whose events would become dead
// letters in the queue of another sink.
func (p *Props) checkTopics(fs *faultList) {
	sinks, bySink := make(map[string][]string), false
	for _, u := range p.Upstreams {
		if u.Topic == nil && u.Envelope {
			fs.add("Upstreams", "", "has Envelope without Topic", "leave Envelope out: only SNS has this envelope")
		}
		for _, sink := range u.sinks(p.Config) {
			if u.Topic != nil && !slices.Contains(sinks[*u.Topic.TopicArn()], sink) {
				sinks[*u.Topic.TopicArn()] = append(sinks[*u.Topic.TopicArn()], sink)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Config.Sources)) {
		for i, m := range p.Config.Sources[name].Match {
			bySink = bySink || m.Sink != ""
			if at := fmt.Sprintf("sources.%s.match[%d]", name, i); m.Topic != "" && m.Named && sinks[m.Topic] != nil {
				fs.add(at, m.Topic, "also asks for the attribute lull-source, which stays in SNS's envelope where a rule names "+
					"the topic: it never holds", "remove named or topic")
			}
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(sinks)) {
		if to := sinks[topic]; len(to) > 1 && !bySink && p.Config.Queues.Elsewhere != config.ElsewhereSkip {
			fs.add("queues.elsewhere", string(p.Config.Queues.Elsewhere), "makes dead letters of the events of one topic, "+
				"which the queues of sinks "+strings.Join(to, " and ")+" get: each has those of the other", "write skip")
		}
	}
}

// isAnybody reports whether a principal includes every account: it is the principal that means
// everyone, or a service.
func isAnybody(who awsiam.IPrincipal) bool {
	for kind, list := range *who.PolicyFragment().PrincipalJson() {
		if kind == "Service" || kind == "*" || slices.ContainsFunc(*list, func(s *string) bool { return *s == "*" }) {
			return true
		}
	}
	return false
}
