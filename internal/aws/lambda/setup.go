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
)

// Names of the environment. It holds names and ARNs only; what a function does is in its settings.
const (
	EnvSink      = "LULL_SINK"           // the sink's name in the settings
	EnvTable     = "LULL_TABLE"          // the table's name
	EnvBucket    = "LULL_BUCKET"         // the bucket's name
	EnvLiveQueue = "LULL_LIVE_QUEUE_URL" // the sink's live queue
	EnvBulkQueue = "LULL_BULK_QUEUE_URL" // the sink's bulk queue
	EnvDeadQueue = "LULL_DEAD_QUEUE_URL" // the sink's dead-letter queue
	EnvExpress   = "LULL_EXPRESS_ARN"    // the sink's Express state machine
	EnvStandard  = "LULL_STANDARD_ARN"   // the sink's Standard state machine
	EnvLogLevel  = "LULL_LOG_LEVEL"      // DEBUG, INFO, WARN or ERROR; INFO where it is missing
	// EnvDeadSenders are the ids of those whose dead letters dlq believes, parted by commas.
	EnvDeadSenders = "LULL_DEAD_SENDERS"
	// EnvSettings are the settings in JSON, where a stack is made from a release's template: its
	// programs have no SettingsFile. Secrets are never part of settings.
	EnvSettings = "LULL_SETTINGS"
)

// DLQTimeout is the time-out of dlq, for which the settings have none.
const DLQTimeout = 30 * time.Second

// SettingsFile is the name of the settings beside a function's binary.
const SettingsFile = "config.json"

// Setup is what a function is wired from.
type Setup struct {
	Config  *config.Config
	Sink    string
	Journal *Journal
	Getenv  func(string) string

	missing []string
}

// Name is the value of a variable that must be there. What is missing is reported once, by Missing.
func (s *Setup) Name(variable string) string {
	v := s.Getenv(variable)
	if v == "" {
		s.missing = append(s.missing, variable)
	}
	return v
}

// QueueName is the name of the queue with the URL in that variable.
func (s *Setup) QueueName(variable string) string { return queueName(s.Getenv(variable)) }

// Missing is an error that names every variable that Name did not find, nil for none.
func (s *Setup) Missing() error {
	if len(s.missing) == 0 {
		return nil
	}
	return fmt.Errorf("environment: not set: %s", strings.Join(s.missing, ", "))
}

// Table counts what a table is asked, in the metrics of each invocation.
func (s *Setup) Table(counts func() (reads, writes, refused int64)) { s.Journal.rows = counts }

// Wire makes a function's handler. It makes no request: what may fail for a moment fails at its
// first use, and is tried again there.
type Wire func(*Setup) (Handler, error)

// MemoryLimit is how many bytes a function with so many MB may use before the garbage collector
// works harder. What the platform counts besides has the rest.
func MemoryLimit(megabytes int64) int64 { return megabytes << 20 / 8 * 5 }

// Main runs a function. It does not return.
func Main(function string, wire Wire) {
	if mb, err := strconv.ParseInt(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 10, 32); err == nil && mb > 0 {
		debug.SetMemoryLimit(MemoryLimit(mb))
	}
	runtime.Start(New(function, os.Getenv, folders(os.Getenv), os.Stdout, wire))
}

// folders are where the settings may be: beside the binary, otherwise where Lambda puts a
// function's code.
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

// New makes the handler of a function from its environment and the settings in the first of the
// folders that has them. Where anything is wrong with either, the handler is one that refuses every
// invocation and says why.
func New(function string, getenv func(string) string, folders []string, out io.Writer, wire Wire) Handler {
	s := &Setup{Getenv: getenv, Sink: getenv(EnvSink)}
	cfg, err := settings(getenv(EnvSettings), folders)
	s.Config = &cfg
	s.Journal = NewJournal(out, decisionlog.Level(getenv(EnvLogLevel)), metrics.Base{
		Stack: cmp.Or(cfg.Stack, stackOf(getenv("AWS_LAMBDA_FUNCTION_NAME"), s.Sink, function), "unknown"),
		Sink:  cmp.Or(s.Sink, "unknown"), Function: function,
	})
	if err == nil {
		err = s.checkSink()
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

// invocations tells the log which invocation its lines belong to.
type invocations struct {
	Handler
	journal *Journal
}

func (i *invocations) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	i.journal.Log.Request(request(ctx))
	return i.Handler.Invoke(ctx, payload)
}

// stackOf is the stack of a function that is called <stack>-<sink>-<function>: for metrics where
// the settings cannot be read.
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
	return config.Config{}, fmt.Errorf("%s is not beside the function's binary: build and deploy them together",
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

// Refusal is a function with bad settings: it answers every message as failed, fails every other
// invocation, and says why each time.
type Refusal struct {
	Err     error
	Journal *Journal
}

var _ Handler = (*Refusal)(nil)

// Invoke refuses.
func (r *Refusal) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	defer r.Journal.finish(ctx)
	r.Journal.Count(metrics.ConfigurationErrors, 1)
	batch, err := ReadBatch(payload)
	said := []any{"error", r.Err.Error()}
	if s, no := ReadState(payload); err != nil && no == nil {
		said = append(said, "flight", string(s.Flight)) // which of them waits for better settings, or dies
	}
	r.Journal.Log.Error("bad settings", said...)
	if err != nil {
		return nil, fmt.Errorf("bad settings: %w", r.Err)
	}
	return Answer(append(batch.Unread, ids(batch.Messages)...)), nil
}
