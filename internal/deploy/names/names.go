// Package names is what the resources of a stack are called: infra makes them so, and the command
// line finds them by their names.
package names

import (
	"cmp"
	"strings"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/flight"
)

// Function is one of the four programs.
type Function string

// The functions.
const (
	Receive Function = "receive"
	Index   Function = "index"
	Prune   Function = "prune"
	DLQ     Function = "dlq"
)

// Feed is the program inside the pipe of a commit feed. A stack has one of it at most, and no sink
// has one of its own.
const Feed Function = "feed"

// Program is the program of a function: its folder below functions, and below a folder of builds.
// Index has one for each kind of sink, such as index/opensearch, which links that kind alone.
type Program string

// Program is the function's program for a sink of a kind.
func (f Function) Program(kind string) Program {
	if f == Index {
		return Program(string(f) + "/" + kind)
	}
	return Program(f)
}

// File is the program's name as part of a file's.
func (p Program) File() string { return strings.ReplaceAll(string(p), "/", "-") }

// Functions returns those that every sink has.
func Functions() []Function { return []Function{Receive, Index, Prune, DLQ} }

// Megabytes is the memory that a stack gives the function unless it is told another; the benchmark
// bills by it. A function has processor time in proportion: 1,769 MB is one core. receive decodes
// 1,000 messages and writes 32 rows at a time, index the same and a bulk request of 5 MB. The
// others wait for the network.
func (f Function) Megabytes() int {
	switch f {
	case Index:
		return 1024
	case DLQ:
		return 256
	default:
		return 512
	}
}

// Alias is the alias by which every function is called, so that a version can be taken back.
const Alias = "current"

// Names are the names of the resources of a stack.
type Names struct {
	Stack string

	table string            // one that exists already; empty for the stack's own
	live  map[string]string // live queues that exist already, by sink
}

// Of returns the names of the settings' stack.
func Of(c *config.Config) Names {
	n := Names{Stack: c.Stack, table: c.Table, live: make(map[string]string)}
	for sink, s := range c.Sinks {
		n.live[sink] = s.LiveQueue
	}
	return n
}

// Table is the table's name.
func (n Names) Table() string { return cmp.Or(n.table, n.Stack+"-shards") }

// Bucket is the bucket's name: those of all accounts and regions share one space.
func (n Names) Bucket(account, region string) string {
	return n.Stack + "-" + account + "-" + region
}

// Queue is the name of a sink's queue in a lane. dlq tells the bulk lane by its end.
func (n Names) Queue(sink string, l flight.Lane) string {
	if l == flight.Live && n.live[sink] != "" {
		return n.live[sink]
	}
	return n.Stack + "-" + sink + "-" + string(l)
}

// DeadQueue is the name of a sink's dead-letter queue.
func (n Names) DeadQueue(sink string) string { return n.Stack + "-" + sink + "-dead" }

// Function is the name of a sink's function.
func (n Names) Function(sink string, f Function) string {
	return n.Stack + "-" + sink + "-" + string(f)
}

// StateMachine is the name of a sink's state machine of a kind. Both kinds always exist, because
// the type of a state machine cannot be changed.
func (n Names) StateMachine(sink string, kind config.FlightKind) string {
	return n.Stack + "-" + sink + "-" + string(kind)
}

// Feed is the name of the commit feed's pipe, and of the function inside it.
func (n Names) Feed() string { return n.Stack + "-feed" }

// FirstRule is the rule that runs prune when a deploy is complete.
func (n Names) FirstRule(sink string) string { return n.Stack + "-" + sink + "-first" }

// FunctionLog is the log group of a sink's function.
func (n Names) FunctionLog(sink string, f Function) string {
	return "/aws/lambda/" + n.Function(sink, f)
}

// StateMachineLog is the log group of a sink's state machines. Under this prefix a log group needs
// no resource policy, of which an account has ten.
func (n Names) StateMachineLog(sink string) string {
	return "/aws/vendedlogs/states/" + n.Stack + "-" + sink
}

// Alarm is the name of an alarm; sink is empty for one of the stack.
func (n Names) Alarm(sink, kind string) string {
	if sink == "" {
		return n.Stack + "-" + kind
	}
	return n.Stack + "-" + sink + "-" + kind
}

// Role is the name of an operator's role. Roles have no region, so the name does.
func (n Names) Role(what, region string) string { return n.Stack + "-" + what + "-" + region }

// Dashboard is the dashboard's name.
func (n Names) Dashboard() string { return n.Stack }
