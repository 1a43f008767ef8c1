// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"github.com/lullhq/lull/internal/aws/alarms"
	"github.com/lullhq/lull/internal/config"
)

// Dashboards is the number of dashboards of a stack.
const Dashboards = 1

// AlarmMetrics returns how many metrics the alarms of a stack use. AWS bills an alarm for each of
// its metrics.
func AlarmMetrics(c *config.Config) (n int) {
	all := append(alarms.OfStack(c), alarms.OfSearchable(c)...)
	machines := []string{string(config.FlightExpress), string(config.FlightStandard)} // a stack has both kinds
	for name := range c.Sinks {
		all = append(all, alarms.Sink{Config: c, Name: name, Machines: machines}.Alarms()...)
	}
	for _, a := range all {
		n += len(a.Metrics())
	}
	return n
}

// secrets returns the number of secrets that contain the passwords of the sinks.
func secrets(c *config.Config) int {
	seen := map[string]bool{}
	for _, s := range c.Sinks {
		if s.Auth.SecretARN != "" {
			seen[s.Auth.SecretARN] = true
		}
	}
	return len(seen)
}

// Numbers of pollers of an event source mapping. AWS starts with five. AWS uses as few as two
// pollers if traffic is low and the mapping has no limit.
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
const (
	FewestPollers = 2
	FirstPollers  = 5
)

// fewest returns the smallest number of pollers that AWS uses for a lane.
func fewest(l config.Lane) int {
	if l.MaxConcurrency == 0 {
		return FewestPollers
	}
	return FirstPollers
}
