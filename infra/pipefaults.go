// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/setting"
)

// Patterns of the names that a pipe has or refers to.
var (
	pipeName   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,19}$`)
	topicName  = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{1,248}$`)
	groupName  = regexp.MustCompile(`^[A-Za-z0-9/*:_+=.@-]{1,200}$`)
	serverName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}$`)
)

// Limits of AWS::Pipes::Pipe.
const (
	maxPipeWindow   = 5 * time.Minute
	maxPipeRetries  = 10_000
	minPipeAge      = time.Minute
	maxPipeAge      = 7 * 24 * time.Hour
	maxPipeParallel = 10
	maxPipeFilters  = 5
	maxPipePattern  = 4096
	maxServers      = 3
	minPipeIdle     = 5 * time.Minute
	maxPipeIdle     = 24 * time.Hour
)

// pipeResources is how many resources belong to a pipe, without the pipe itself.
func pipeResources(p *Pipe) int {
	if p.Idle > 0 {
		return 3 // role, two alarms
	}
	return 2
}

// checkPipes reports pipes that CloudFormation would refuse after minutes, and pipes that AWS would
// create but never run.
func (p *Props) checkPipes(fs *faultList) {
	taken := make(map[string]bool)
	for i, u := range p.Upstreams {
		if u.Pipe == nil {
			continue
		}
		c := pipeCheck{fs, fmt.Sprintf("Upstreams[%d].Pipe", i)}
		c.matches("Name", u.Pipe.Name, pipeName, "write 1 to 20 of a-z, 0-9 and -")
		if key := u.sink(p.Config) + "/" + u.Pipe.Name; taken[key] {
			c.fault("Name", u.Pipe.Name, "is the name of another pipe of the sink", "name each differently")
		} else {
			taken[key] = true
		}
		c.source(u.Pipe)
		c.numbers(u.Pipe)
		c.filters(u.Pipe.Filters)
	}
}

type pipeCheck struct {
	fs *faultList
	at string
}

func (c pipeCheck) fault(field, value, problem, fix string) {
	if field != "" {
		field = "." + field
	}
	c.fs.add(c.at+field, value, problem, fix)
}

// matches checks that a text has the given shape. It accepts a token of CDK, whose text is not
// known yet.
func (c pipeCheck) matches(field, value string, shape *regexp.Regexp, fix string) {
	if strings.Contains(value, "${Token[") || shape.MatchString(value) {
		return
	}
	problem := "is not one"
	if value == "" {
		problem = "is missing"
	}
	c.fault(field, value, problem, fix)
}

func (c pipeCheck) source(p *Pipe) {
	c.fs.exactlyOne(c.at, "DynamoDB, Kinesis, Kafka, RabbitMQ and ActiveMQ",
		p.DynamoDB != "", p.Kinesis != "", p.Kafka != nil, p.RabbitMQ != nil, p.ActiveMQ != nil)
	if p.Kafka != nil {
		c.kafka(p.Kafka)
	}
	for field, b := range map[string]*Broker{"RabbitMQ": p.RabbitMQ, "ActiveMQ": p.ActiveMQ} {
		if b == nil {
			continue
		}
		if b.Queue == "" {
			c.fault(field+".Queue", "", "is missing", "write the queue's name")
		}
		if b == p.ActiveMQ && b.VirtualHost != "" {
			c.fault("ActiveMQ.VirtualHost", b.VirtualHost, "is RabbitMQ's", "remove it")
		}
	}
}

func (c pipeCheck) kafka(k *Kafka) {
	managed := k.Cluster != ""
	if managed == (len(k.Servers) > 0) {
		c.fault("Kafka", "", "has both or neither of Cluster and Servers",
			"set Cluster for Amazon MSK, otherwise Servers")
	}
	if managed {
		if k.Vpc != nil || k.RootSecretARN != "" {
			c.fault("Kafka", k.Cluster, "has Vpc or RootSecretARN, which a cluster of Amazon MSK says itself", "remove them")
		}
	}
	for _, s := range k.Servers {
		c.matches("Kafka.Servers", s, serverName, "write HOST:PORT")
	}
	if len(k.Servers) > maxServers {
		c.fault("Kafka.Servers", strconv.Itoa(len(k.Servers)), "are too many", "name at most three brokers: they name the others")
	}
	c.matches("Kafka.Topic", k.Topic, topicName, "write the topic's name, 2 to 249 of A-Z, a-z, 0-9, -, _ and .")
	if k.Group != "" {
		c.matches("Kafka.Group", k.Group, groupName, "write 1 to 200 of A-Z, a-z, 0-9 and -/*:_+=.@")
	}
	if k.Vpc.incomplete() {
		c.fault("Kafka.Vpc", "", "has no subnets or no security groups", "give at least one of each, or leave Vpc out")
	}
	c.login(k, managed)
}

func (c pipeCheck) login(k *Kafka, managed bool) {
	ways := []Login{SCRAM512, ClientCertificate}
	if !managed {
		ways = append(ways, SCRAM256, Plain)
	}
	switch {
	case (k.SecretARN == "") != (k.Login == ""):
		c.fault("Kafka.Login", string(k.Login), "and SecretARN belong together", "set both, or neither")
	case k.Login != "" && !slices.Contains(ways, k.Login):
		c.fault("Kafka.Login", string(k.Login), "is not a way to log in to such a cluster",
			fmt.Sprintf("write one of %v", ways))
	}
}

func (c pipeCheck) numbers(p *Pipe) {
	c.count("Batch", p.Batch, maxPipeBatch, "write how many messages a request to SQS carries, at most 10")
	c.duration("Window", p.Window, 0, maxPipeWindow, time.Second)
	c.duration("Idle", p.Idle, minPipeIdle, maxPipeIdle, time.Minute)
	switch {
	case p.From != "" && p.From != Oldest && p.From != Newest:
		c.fault("From", string(p.From), "is not a starting position", "write Oldest or Newest")
	case p.From != "" && p.broker() != nil:
		c.fault("From", string(p.From), "is not for the queue of a broker, which has no positions", "remove it")
	}
	if !p.isStream() {
		if p.Retries != 0 || p.MaxAge != 0 || p.Parallel != 0 {
			c.fault("", "", "has Retries, MaxAge or Parallel, which only streams of DynamoDB and Kinesis have",
				"remove them: a pipe of another source retries without a limit")
		}
		return
	}
	c.duration("MaxAge", p.MaxAge, minPipeAge, maxPipeAge, time.Second)
	c.count("Retries", p.Retries, maxPipeRetries, "write how often, or 0 for as long as MaxAge says")
	c.count("Parallel", p.Parallel, maxPipeParallel, "write how many batches of a shard are read at once")
}

// count checks a number that is 1 to most, or 0 for the default.
func (c pipeCheck) count(field string, n, most int, fix string) {
	if n < 0 || n > most {
		c.fault(field, strconv.Itoa(n), "is not 1 to "+strconv.Itoa(most), fix)
	}
}

// duration checks a time between least and most, or 0 for the default.
func (c pipeCheck) duration(field string, d, least, most, unit time.Duration) {
	if d != 0 && (d < least || d > most || d%unit != 0) {
		c.fault(field, setting.FormatDuration(d), "is not "+setting.FormatDuration(least)+" to "+
			setting.FormatDuration(most)+" in steps of "+setting.FormatDuration(unit), "write one of them, or 0")
	}
}

func (c pipeCheck) filters(patterns []string) {
	if len(patterns) > maxPipeFilters {
		c.fault("Filters", strconv.Itoa(len(patterns)), "are too many", "write at most five patterns")
	}
	for _, pattern := range patterns {
		var object map[string]any
		err := json.Unmarshal([]byte(pattern), &object)
		if err != nil || len(object) == 0 || len(pattern) > maxPipePattern {
			c.fault("Filters", pattern, "is not an event pattern: a JSON object of at most 4096 bytes",
				`write one such as {"data":{"type":["page"]}}`)
		}
	}
}
