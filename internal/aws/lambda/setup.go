// SPDX-License-Identifier: Apache-2.0

package lambda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	runtime "github.com/aws/aws-lambda-go/lambda"

	"github.com/lullhq/lull/internal/aws/decisionlog"
	"github.com/lullhq/lull/internal/aws/metrics"
	"github.com/lullhq/lull/internal/aws/tracing"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/queue"
)

// The names of the environment variables. Most variables contain the name or the ARN of a resource.
// The settings say what a function does.
const (
	EnvSink      = "LULL_SINK"           // the name of the sink in the settings
	EnvTable     = "LULL_TABLE"          // the name of the table
	EnvBucket    = "LULL_BUCKET"         // the name of the bucket
	EnvLiveQueue = "LULL_LIVE_QUEUE_URL" // the URL of the sink's live queue
	EnvBulkQueue = "LULL_BULK_QUEUE_URL" // the URL of the sink's bulk queue
	EnvDeadQueue = "LULL_DEAD_QUEUE_URL" // the URL of the sink's dead-letter queue
	EnvExpress   = "LULL_EXPRESS_ARN"    // the ARN of the sink's Express state machine
	EnvStandard  = "LULL_STANDARD_ARN"   // the ARN of the sink's Standard state machine
	// EnvLiveQueues has the URLs of the live queues of all sinks, in the order of the sinks' names and
	// separated by commas.
	EnvLiveQueues = "LULL_LIVE_QUEUE_URLS"
	EnvBulkQueues = "LULL_BULK_QUEUE_URLS" // as EnvLiveQueues, of the bulk queues
	EnvLogLevel   = "LULL_LOG_LEVEL"       // DEBUG, INFO, WARN or ERROR; INFO if the variable is missing
	// EnvSenders contains the ids that [Setup.Senders] returns, separated by commas (ADR 0057).
	EnvSenders = "LULL_SENDERS"
	// EnvSettings contains the settings as JSON. A stack that is created from the template of a
	// release uses it, because its programs have no SettingsFile. Settings never contain secrets.
	EnvSettings = "LULL_SETTINGS"
)

// DLQTimeout is the time-out of the function dlq. The settings have no field for this time-out.
const DLQTimeout = 30 * time.Second

// SearchableTimeout is the time-out of the function searchable. It is longer than the longest poll
// and its last reads.
const SearchableTimeout = 28 * time.Second

// JobTimeout is the time-out of the function job.
const JobTimeout = 5 * time.Minute

// SettingsFile is the name of the settings file in the folder of a function's binary.
const SettingsFile = "config.json"

// Setup contains what Wire needs to make the handler of a function.
type Setup struct {
	Config  *config.Config
	Sink    string
	Journal *Journal
	Getenv  func(string) string

	missing []string
}

// Name returns the value of a required environment variable. Missing later reports all missing
// variables at once.
func (s *Setup) Name(variable string) string {
	v := s.Getenv(variable)
	if v == "" {
		s.missing = append(s.missing, variable)
	}
	return v
}

// Senders returns the ids of the roles whose messages count as sent by lull itself.
func (s *Setup) Senders() queue.Senders { return strings.Split(s.Name(EnvSenders), ",") }

// QueueName returns the name of the queue whose URL is in the given environment variable.
func (s *Setup) QueueName(variable string) string { return queueName(s.Getenv(variable)) }

// Missing returns an error that names every variable that Name did not find, or nil if all were
// found.
func (s *Setup) Missing() error {
	if len(s.missing) == 0 {
		return nil
	}
	return fmt.Errorf("environment: not set: %s", strings.Join(s.missing, ", "))
}

// Table adds the numbers of requests to the table to the metrics of each invocation.
func (s *Setup) Table(counts func() (reads, writes, refused int64)) { s.Journal.rows = counts }

// Wire makes the handler of a function. A Wire must not send requests, because at this point a
// request that fails would not be retried.
type Wire func(*Setup) (Handler, error)

// MemoryLimit returns the soft memory limit in bytes for a function with the given memory in MB.
// Above the limit, the garbage collector works harder. The rest is for memory that Go does not
// count.
func MemoryLimit(megabytes int64) int64 { return megabytes << 20 / 8 * 5 }

// Main runs a function. Main never returns.
func Main(function string, wire Wire) {
	limitMemory()
	runtime.Start(New(function, os.Getenv, folders(os.Getenv), os.Stdout, wire))
}

func limitMemory() {
	if mb, err := strconv.ParseInt(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 10, 32); err == nil && mb > 0 {
		debug.SetMemoryLimit(MemoryLimit(mb))
	}
}

// MainOfStack is Main for a function that belongs to no sink.
func MainOfStack(function string, wire Wire) {
	limitMemory()
	runtime.Start(NewOfStack(function, os.Getenv, folders(os.Getenv), os.Stdout, wire))
}

// folders returns the folders in which the settings file may be: the folder of the binary, and the
// folder in which Lambda puts the code of a function.
func folders(getenv func(string) string) []string {
	var out []string
	if exe, err := os.Executable(); err == nil {
		out = append(out, filepath.Dir(exe))
	}
	if root := getenv("LAMBDA_TASK_ROOT"); root != "" {
		out = append(out, root)
	}
	return out
}

// New makes the handler of a function from its environment and its settings. The settings come from
// EnvSettings, otherwise from the first of the folders that has a settings file. If the environment
// or the settings are invalid, the handler refuses every invocation and logs the reason.
func New(function string, getenv func(string) string, folders []string, out io.Writer, wire Wire) Handler {
	return newHandler(&Setup{Getenv: getenv, Sink: getenv(EnvSink)}, function, folders, out, (*Setup).checkSink, wire)
}

// NewOfStack is New for a function that belongs to no sink. Its metrics have the sink "all".
func NewOfStack(function string, getenv func(string) string, folders []string, out io.Writer, wire Wire) Handler {
	return newHandler(&Setup{Getenv: getenv, Sink: "all"}, function, folders, out, func(*Setup) error { return nil }, wire)
}

func newHandler(s *Setup, function string, folders []string, out io.Writer, check func(*Setup) error,
	wire Wire,
) Handler {
	getenv := s.Getenv
	cfg, err := settings(getenv(EnvSettings), folders)
	s.Config = &cfg
	s.Journal = NewJournal(out, decisionlog.Level(getenv(EnvLogLevel)), metrics.Base{
		Stack: cmp.Or(cfg.Stack, stackOf(getenv("AWS_LAMBDA_FUNCTION_NAME"), s.Sink, function), "unknown"),
		Sink:  cmp.Or(s.Sink, "unknown"), Function: function,
	})
	if err == nil {
		err = check(s)
	}
	s.Journal.Traces = tracing.New(cfg.Tracing.Endpoint, "lull "+cfg.Stack+" "+s.Sink, function)
	var h Handler
	if err == nil {
		h, err = wire(s)
	}
	if err == nil {
		err = s.Missing()
	}
	if err != nil {
		h = &Refusal{Err: err, Journal: s.Journal}
	}
	return &invocations{h, s.Journal}
}

// invocations is a handler that adds the id of the invocation to log lines.
type invocations struct {
	Handler
	journal *Journal
}

func (i *invocations) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	i.journal.Log.Request(request(ctx))
	return i.Handler.Invoke(ctx, payload)
}

// stackOf returns the name of the stack from the name of a function, which is
// <stack>-<sink>-<function>. The metrics need the name of the stack if the settings cannot be read.
func stackOf(name, sink, function string) string {
	stack, _ := strings.CutSuffix(name, "-"+sink+"-"+function)
	return stack
}

func settings(text string, folders []string) (config.Config, error) {
	if text != "" {
		cfg, err := config.ParseDeployed([]byte(text))
		if err != nil {
			err = fmt.Errorf("%s: %w", EnvSettings, err)
		}
		return cfg, err
	}
	for _, dir := range folders {
		cfg, err := config.LoadDeployed(filepath.Join(dir, SettingsFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return cfg, err
	}
	return config.Config{}, fmt.Errorf("%s is not in the folder of the function's binary: build and deploy them together",
		SettingsFile)
}

func (s *Setup) checkSink() error {
	if s.Name(EnvSink) == "" {
		return s.Missing()
	}
	if _, ok := s.Config.Sinks[s.Sink]; !ok {
		return fmt.Errorf("%s is %q, but the settings have no such sink", EnvSink, s.Sink)
	}
	return nil
}

// Refusal is the handler of a function with invalid settings. A Refusal reports every message as
// failed, fails every other invocation, and logs the reason each time.
type Refusal struct {
	Err     error
	Journal *Journal
}

var _ Handler = (*Refusal)(nil)

// Invoke refuses an invocation.
func (r *Refusal) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	defer r.Journal.finish(ctx)
	r.Journal.Count(metrics.ConfigurationErrors, 1)
	batch, err := ReadBatch(payload)
	said := []any{"error", r.Err.Error()}
	if s, no := ReadState(payload); err != nil && no == nil {
		said = append(said, "flight", string(s.Flight)) // the flight waits until the settings are corrected, or ends
	}
	r.Journal.Log.Error("bad settings", said...)
	if err != nil {
		return nil, fmt.Errorf("bad settings: %w", r.Err)
	}
	return Answer(append(batch.Unread, ids(batch.Messages)...)), nil
}
