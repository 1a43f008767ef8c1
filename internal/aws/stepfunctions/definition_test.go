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

// machine and state hold every field that the definition may use. A field that is spelt wrong, or
// belongs to the other query language, fails the strict decoder.
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

// kinds are the settings that are deployed: Express and Standard, a sink with versions and one
// without.
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
				t.Errorf("it starts at %q, which does not exist", m.StartAt)
			}
			reached := map[string]bool{m.StartAt: true}
			for name, s := range m.States {
				for _, next := range nexts(s) {
					reached[next] = true
					if _, ok := m.States[next]; !ok {
						t.Errorf("%s goes to %q, which does not exist", name, next)
					}
				}
				checkState(t, name, s)
			}
			for name := range m.States {
				if !reached[name] {
					t.Errorf("%s is never reached", name)
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

// checkState checks one state against the language: the fields that its type has, and no others.
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
			t.Errorf("%s: a choice wants choices and a default, and no Next", name)
		}
	case "Succeed":
		if s.Next != "" || s.End {
			t.Errorf("%s: nothing follows the end", name)
		}
	case "Task":
		if s.Resource != "arn:aws:states:::lambda:invoke" {
			t.Errorf("%s: resource %q is not an integration that the role allows", name, s.Resource)
		}
		if s.Arguments["FunctionName"] != indexARN {
			t.Errorf("%s: function %q, want the index function by its alias", name, s.Arguments["FunctionName"])
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
			t.Errorf("%s: time-out %d s", name, s.TimeoutSeconds)
		}
	default:
		t.Errorf("%s: type %q", name, s.Type)
	}
	if s.Type != "Task" && (s.Resource != "" || s.Arguments != nil || s.Retry != nil || s.TimeoutSeconds != 0) {
		t.Errorf("%s: a %s has no resource, arguments, retries or time-out", name, s.Type)
	}
}

func TestRetriesWaitForTheLease(t *testing.T) {
	t.Parallel()
	for name, k := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := rendered(t, k.p).States["Index"]
			if len(s.Retry) != 2 {
				t.Fatalf("got %d retriers, want one for throttles and one for all else", len(s.Retry))
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
					t.Errorf("retrier %d: jitter %q", i, r.JitterStrategy)
				}
			}
			throttles, all := s.Retry[0], s.Retry[1]
			for _, e := range throttles.ErrorEquals {
				if !slices.Contains(refusedBeforeItRan, e) {
					t.Errorf("%s is retried at once, but the function may have run", e)
				}
			}
			if throttles.JitterStrategy != "FULL" {
				t.Error("throttles are retried without jitter")
			}
			if len(all.ErrorEquals) != 1 || all.ErrorEquals[0] != "States.ALL" {
				t.Errorf("the last retrier is for %v, want States.ALL alone", all.ErrorEquals)
			}
			if all.JitterStrategy != "NONE" {
				t.Error("jitter shortens the wait for a lease")
			}
			if got := time.Duration(all.IntervalSeconds) * time.Second; got < k.lease {
				t.Errorf("an ambiguous failure is retried after %s, the lease is %s", got, k.lease)
			}
			if got := time.Duration(s.TimeoutSeconds) * time.Second; got <= config.Default().Index.Timeout {
				t.Errorf("a turn counts as lost after %s, before the function's own time-out", got)
			}
		})
	}
}

// refusedBeforeItRan are Lambda's errors that say the function was not started.
var refusedBeforeItRan = []string{
	"Lambda.TooManyRequestsException", "Lambda.EC2ThrottledException",
	"Lambda.ENILimitReachedException",
}

// The machine reads three fields of the state and adds one. Renaming a field of flight.State would
// break it in silence.
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
			t.Errorf("%s: in the state %v, read by the machine %v", name, ok,
				strings.Contains(text, "$states.input."+name))
		}
	}
	if _, ok := fields["startedAt"]; ok || !strings.Contains(text, "'startedAt': $states.context.Execution.StartTime") {
		t.Error("startedAt must be the machine's alone")
	}
}

func TestNothingIsCaught(t *testing.T) {
	t.Parallel()
	if bytes.Contains([]byte(file(t)), []byte(`"Catch"`)) {
		t.Error("a flight that fails is recovered by redelivery: a Catch would hide it")
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
		"a placeholder that is not": func(_ *Parameters, f *string) {
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
	// The infrastructure's ARN is a token that looks like a placeholder.
	p := good
	p.IndexARN = "${Token[TOKEN.123]}"
	if out, err := Render(file(t), p); err != nil || !strings.Contains(out, `"FunctionName": "${Token[TOKEN.123]}"`) {
		t.Errorf("got %v, want the token untouched", err)
	}
}
