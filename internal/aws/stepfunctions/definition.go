// SPDX-License-Identifier: Apache-2.0

package stepfunctions

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/config"
)

// Parameters contains the values for the placeholders in the definition.
type Parameters struct {
	IndexARN  string // the ARN of the index function's alias; may be a CDK token
	Partition string // the partition of the region: aws, aws-cn, aws-us-gov; may be a CDK token
	// the time after which a turn without an answer counts as lost; longer than the time-out of the
	// function
	TurnTimeout    time.Duration
	AmbiguousRetry time.Duration // the wait after a turn whose outcome is unknown; at least as long as the lease
	Limit          time.Duration // the time after which an execution is stopped
	Kind           config.FlightKind
}

const (
	// turnSlack is how much longer a turn may take than the time-out of the function, because
	// Lambda may kill an invocation late.
	turnSlack = 5 * time.Second
	// expressLimit and standardLimit are the longest times of an execution. SQS ends every hold
	// after twelve hours.
	expressLimit  = 5 * time.Minute
	standardLimit = 12 * time.Hour
)

// ParametersFor returns the parameters that follow from the settings, for the state machine of one
// sink and one kind.
func ParametersFor(c *config.Config, sink string, kind config.FlightKind, partition, indexARN string) Parameters {
	p := Parameters{
		IndexARN: indexARN, Partition: partition, TurnTimeout: c.Index.Timeout + turnSlack,
		AmbiguousRetry: c.AmbiguousRetry(sink),
		Limit:          expressLimit, Kind: kind,
	}
	if kind == config.FlightStandard {
		p.Limit = standardLimit
	}
	return p
}

var placeholder = regexp.MustCompile(`"?\$\{([A-Za-z]+)\}"?`)

// Render replaces the placeholders in the definition file with the parameters. In the file, every
// placeholder is a JSON string, so that the file is valid JSON. Render removes the quotes around
// numbers. An unknown or missing placeholder is an error.
func Render(file string, p Parameters) (string, error) {
	values := map[string]string{
		"IndexARN":  strconv.Quote(p.IndexARN),
		"Kind":      string(p.Kind),
		"InvokeARN": strconv.Quote("arn:" + p.Partition + ":states:::lambda:invoke"),
	}
	for name, d := range map[string]time.Duration{
		"TurnTimeoutSeconds": p.TurnTimeout, "AmbiguousRetrySeconds": p.AmbiguousRetry, "LimitSeconds": p.Limit,
	} {
		if d < time.Second || d%time.Second != 0 {
			return "", fmt.Errorf("render state machine: %s is %s, but must be whole seconds", name, d)
		}
		values[name] = strconv.Itoa(int(d / time.Second))
	}
	used := map[string]bool{}
	var unknown []string
	out := placeholder.ReplaceAllStringFunc(file, func(found string) string {
		name := strings.Trim(found, `"${}`)
		v, ok := values[name]
		if !ok {
			unknown = append(unknown, name)
			return found
		}
		used[name] = true
		return v
	})
	for name := range values {
		if !used[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		sort.Strings(unknown)
		return "", fmt.Errorf("render state machine: placeholders that are unknown or missing: %s",
			strings.Join(unknown, ", "))
	}
	if !json.Valid([]byte(out)) {
		return "", fmt.Errorf("render state machine: the result is not JSON")
	}
	return out, nil
}
