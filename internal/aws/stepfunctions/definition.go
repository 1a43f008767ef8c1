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

// Parameters are the values for the definition's placeholders.
type Parameters struct {
	IndexARN       string        // the index function by its alias; may be a token of the infrastructure's
	Partition      string        // of the region: aws, aws-cn, aws-us-gov; may be a token
	TurnTimeout    time.Duration // when a turn without an answer counts as lost: past the function's own time-out
	AmbiguousRetry time.Duration // the wait after a turn whose outcome is unknown: at least the lease
	Limit          time.Duration // when an execution is ended
	Kind           config.FlightKind
}

const (
	// turnSlack is how much longer than the function's time-out a turn may take: the platform may
	// kill an invocation late.
	turnSlack = 5 * time.Second
	// expressLimit and standardLimit end an execution. SQS ends every hold after twelve hours.
	expressLimit  = 5 * time.Minute
	standardLimit = 12 * time.Hour
)

// ParametersFor are the parameters by the settings, for one sink's state machine of that kind.
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

// Render fills the parameters into the definition file. In the file every placeholder is a JSON
// string, so that the file is valid JSON, too; placeholders of numbers lose their quotes. An
// unknown or missing placeholder is an error.
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
