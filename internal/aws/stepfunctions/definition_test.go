// SPDX-License-Identifier: Apache-2.0

package stepfunctions

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
)

const indexARN = "arn:aws:lambda:us-east-1:123456789012:function:lull-search-index:live"

func file(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "infra", "flight.asl.json"))
	if err != nil {
		t.Fatalf("read the definition: %v", err)
	}
	return string(b)
}

// The types machine and state have every field that the definition may use. The strict decoder
// refuses a misspelt field, and a field of the query language JSONPath.
type machine struct {
	Comment        string
	QueryLanguage  string
	StartAt        string
	TimeoutSeconds int
	States         map[string]state
}

type state struct {
	Comment        string
	Type           string
	Resource       string
	Arguments      map[string]string
	Output         string
	Timestamp      string
	TimeoutSeconds int
	Retry          []retrier
	Choices        []struct{ Condition, Next string }
	Default        string
	Next           string
	End            bool
}

type retrier struct {
	ErrorEquals     []string
	IntervalSeconds int
	BackoffRate     float64
	MaxDelaySeconds int
	MaxAttempts     int
	JitterStrategy  string
}

func rendered(t *testing.T, p Parameters) machine {
	t.Helper()
	text, err := Render(file(t), p)
	if err != nil {
		t.Fatalf("Render: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	var m machine
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("decode the definition: %v", err)
	}
	return m
}

// kinds returns parameters for the kinds Express and Standard of a state machine. Each kind has a
// sink with external versions and a sink without.
func kinds(t *testing.T) map[string]struct {
	p     Parameters
	lease time.Duration
} {
	t.Helper()
	out := map[string]struct {
		p     Parameters
		lease time.Duration
	}{}
	for _, kind := range []config.FlightKind{config.FlightExpress, config.FlightStandard} {
		for _, serverless := range []bool{false, true} {
			c := config.Default()
			s := c.Sinks["search"]
			versions := !serverless
			s.Kind, s.URL, s.Versions = "opensearch", "https://search.example.org", &versions
			c.Sinks["search"] = s
			c.Flight.Kind = kind
			name := string(kind)
			if serverless {
				name += " without versions"
			}
			out[name] = struct {
				p     Parameters
				lease time.Duration
			}{ParametersFor(&c, "search", c.Flight.Kind, "aws", indexARN), c.Lease("search")}
		}
	}
	return out
}

func TestTheDefinitionIsWhatTheServiceTakes(t *testing.T) {
	t.Parallel()
	for name, k := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rendered(t, k.p)
			if m.QueryLanguage != "JSONata" {
				t.Errorf("query language %q", m.QueryLanguage)
			}
			limit := 5 * 60
			if strings.HasPrefix(name, "standard") {
				limit = 366 * 24 * 3600
			}
			if m.TimeoutSeconds < 1 || m.TimeoutSeconds > limit {
				t.Errorf("time-out %d s, want 1 to %d", m.TimeoutSeconds, limit)
			}
			if _, ok := m.States[m.StartAt]; !ok {
				t.Errorf("the machine starts at the state %q, which does not exist", m.StartAt)
			}
			reached := map[string]bool{m.StartAt: true}
			for name, s := range m.States {
				for _, next := range nexts(s) {
					reached[next] = true
					if _, ok := m.States[next]; !ok {
						t.Errorf("the state %s names the next state %q, which does not exist", name, next)
					}
				}
				checkState(t, name, s)
			}
			for name := range m.States {
				if !reached[name] {
					t.Errorf("no state leads to the state %s", name)
				}
			}
		})
	}
}

func nexts(s state) []string {
	var out []string
	for _, c := range s.Choices {
		out = append(out, c.Next)
	}
	for _, next := range []string{s.Next, s.Default} {
		if next != "" {
			out = append(out, next)
		}
	}
	return out
}

// checkState checks one state against the Amazon States Language: the state must have the fields of
// its type and no other fields.
func checkState(t *testing.T, name string, s state) {
	t.Helper()
	expression := func(field, text string) {
		if !strings.HasPrefix(text, "{%") || !strings.HasSuffix(text, "%}") {
			t.Errorf("%s: %s %q is not a JSONata expression", name, field, text)
		}
	}
	if s.Type != "Choice" && s.Type != "Succeed" && (s.Next == "") == !s.End {
		t.Errorf("%s: want either Next or End", name)
	}
	switch s.Type {
	case "Wait":
		expression("Timestamp", s.Timestamp)
	case "Choice":
		for _, c := range s.Choices {
			expression("Condition", c.Condition)
		}
		if len(s.Choices) == 0 || s.Default == "" || s.Next != "" || s.End {
			t.Errorf("%s: a Choice needs Choices and a Default, and must have neither Next nor End", name)
		}
	case "Succeed":
		if s.Next != "" || s.End {
			t.Errorf("%s: a Succeed must have neither Next nor End", name)
		}
	case "Task":
		if s.Resource != "arn:aws:states:::lambda:invoke" {
			t.Errorf("%s: the resource is %q, but the role allows only lambda:invoke", name, s.Resource)
		}
		if s.Arguments["FunctionName"] != indexARN {
			t.Errorf("%s: the function is %q, want the alias of the index function", name, s.Arguments["FunctionName"])
		}
		for argument := range s.Arguments {
			if !slices.Contains([]string{
				"FunctionName", "Payload", "Qualifier", "ClientContext", "InvocationType",
				"LogType",
			}, argument) {
				t.Errorf("%s: lambda:invoke has no argument %s", name, argument)
			}
		}
		expression("Payload", s.Arguments["Payload"])
		expression("Output", s.Output)
		if s.TimeoutSeconds < 1 || s.TimeoutSeconds > 99_999_999 {
			t.Errorf("%s: the time-out %d s is out of range", name, s.TimeoutSeconds)
		}
	default:
		t.Errorf("%s: type %q", name, s.Type)
	}
	if s.Type != "Task" && (s.Resource != "" || s.Arguments != nil || s.Retry != nil || s.TimeoutSeconds != 0) {
		t.Errorf("%s: a %s must not have a resource, arguments, retries or a time-out", name, s.Type)
	}
}

func TestRetriesWaitForTheLease(t *testing.T) {
	t.Parallel()
	for name, k := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := rendered(t, k.p).States["Index"]
			if len(s.Retry) != 2 {
				t.Fatalf("got %d retriers, want one for throttles and one for all other errors", len(s.Retry))
			}
			for i, r := range s.Retry {
				if r.IntervalSeconds < 1 || r.BackoffRate < 1 || r.MaxAttempts < 1 || r.MaxAttempts > 20 {
					t.Errorf("retrier %d is out of range: %+v", i, r)
				}
				if r.MaxDelaySeconds != 0 && r.MaxDelaySeconds <= r.IntervalSeconds {
					t.Errorf("retrier %d: MaxDelaySeconds %d must be above IntervalSeconds %d", i, r.MaxDelaySeconds,
						r.IntervalSeconds)
				}
				if !slices.Contains([]string{"FULL", "NONE"}, r.JitterStrategy) {
					t.Errorf("retrier %d: the jitter strategy is %q, want FULL or NONE", i, r.JitterStrategy)
				}
			}
			throttles, all := s.Retry[0], s.Retry[1]
			for _, e := range throttles.ErrorEquals {
				if !slices.Contains(refusedBeforeItRan, e) {
					t.Errorf("the first retrier retries %s, but after this error the function may have run", e)
				}
			}
			if throttles.JitterStrategy != "FULL" {
				t.Error("the retrier for throttles has no jitter")
			}
			if len(all.ErrorEquals) != 1 || all.ErrorEquals[0] != "States.ALL" {
				t.Errorf("the last retrier is for %v, want only States.ALL", all.ErrorEquals)
			}
			if all.JitterStrategy != "NONE" {
				t.Error("the last retrier has jitter, which may shorten the wait for the end of a lease")
			}
			if got := time.Duration(all.IntervalSeconds) * time.Second; got < k.lease {
				t.Errorf("an ambiguous failure is retried after %s, want at least the lease of %s", got, k.lease)
			}
			if got := time.Duration(s.TimeoutSeconds) * time.Second; got <= config.Default().Index.Timeout {
				t.Errorf("the state machine ends a turn after %s, before the function's own time-out", got)
			}
		})
	}
}

// refusedBeforeItRan lists the errors of Lambda which say that the function did not start.
var refusedBeforeItRan = []string{
	"Lambda.TooManyRequestsException", "Lambda.EC2ThrottledException",
	"Lambda.ENILimitReachedException",
}

// The state machine reads fields of flight.State and adds a field. If a field of flight.State gets
// another name, the machine no longer works, and no compiler reports this.
func TestTheMachineReadsFieldsThatTheStateHas(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(flight.State{})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	text := file(t)
	for _, name := range []string{"wakeAt", "done"} {
		if _, ok := fields[name]; !ok || !strings.Contains(text, "$states.input."+name) {
			t.Errorf("the field %s: flight.State has it: %v; the machine reads it: %v", name, ok,
				strings.Contains(text, "$states.input."+name))
		}
	}
	if _, ok := fields["startedAt"]; ok || !strings.Contains(text, "'startedAt': $states.context.Execution.StartTime") {
		t.Error("want startedAt only from the state machine, and not in flight.State")
	}
}

func TestNothingIsCaught(t *testing.T) {
	t.Parallel()
	if bytes.Contains([]byte(file(t)), []byte(`"Catch"`)) {
		t.Error("the definition has a Catch: it would hide the failure of a flight, which redelivery repairs")
	}
}

func TestRenderRefusesWhatItCannotFill(t *testing.T) {
	t.Parallel()
	c := config.Default()
	good := ParametersFor(&c, "search", c.Flight.Kind, "aws", indexARN)
	for name, change := range map[string]func(*Parameters, *string){
		"a fraction of a second": func(p *Parameters, _ *string) { p.AmbiguousRetry += time.Millisecond },
		"no time":                func(p *Parameters, _ *string) { p.TurnTimeout = 0 },
		"an unknown placeholder": func(_ *Parameters, f *string) {
			*f = strings.Replace(*f, `"Hold"`, `"${Hold}"`,
				1)
		},
		"a missing placeholder": func(_ *Parameters, f *string) {
			*f = strings.Replace(*f, `"${LimitSeconds}"`,
				`300`, 1)
		},
		"no JSON": func(_ *Parameters, f *string) { *f += "}" },
	} {
		p, f := good, file(t)
		change(&p, &f)
		if out, err := Render(f, p); err == nil {
			t.Errorf("%s: got %q, want an error", name, out)
		}
	}
	// The infrastructure passes a CDK token as the ARN, and the token looks like a placeholder.
	p := good
	p.IndexARN = "${Token[TOKEN.123]}"
	if out, err := Render(file(t), p); err != nil || !strings.Contains(out, `"FunctionName": "${Token[TOKEN.123]}"`) {
		t.Errorf("got %v, want a definition with the unchanged token", err)
	}
}
