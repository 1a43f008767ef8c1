// Package names has the names of a stack's resources. infra creates the resources with these names,
// and the command line finds them by name.
package names

import (
	"cmp"
	"strings"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
)

// Function is one of the functions of a stack.
type Function string

// The functions.
const (
	Receive Function = "receive"
	Index   Function = "index"
	Prune   Function = "prune"
	DLQ     Function = "dlq"
)

// Feed is the function in the pipe of a commit feed. A stack has at most one, for all sinks.
const Feed Function = "feed"

// Program is the program of a function: its folder below functions, and below a folder of builds.
// index has one for each kind of sink, such as index/opensearch, which links only that kind.
type Program string

// Program returns the function's program for a sink of a kind.
func (f Function) Program(kind string) Program {
	if f == Index {
		return Program(string(f) + "/" + kind)
	}
	return Program(f)
}

// File is the program's name as a part of a file name.
func (p Program) File() string { return strings.ReplaceAll(string(p), "/", "-") }

// Functions returns the functions that every sink has.
func Functions() []Function { return []Function{Receive, Index, Prune, DLQ} }

// MegabytesIn is the function's memory in a stack with these settings.
func (f Function) MegabytesIn(c *config.Config) int {
	size := c.Memory.Receive
	switch f {
	case Index:
		size = c.Memory.Index
	case Prune:
		size = c.Memory.Prune
	case DLQ:
		size = c.Memory.DLQ
	}
	return cmp.Or(int(size/config.MemoryStep), f.Megabytes())
}

// Megabytes is the function's memory, unless the settings have another size. The benchmark uses it
// for its bill. A function has processor time in proportion: 1,769 MB is one core. receive decodes
// 1,000 messages and writes 32 rows at a time. index does the same, and sends bulk requests of 5
// MB. The other functions mostly wait for the network.
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

// Alias is the alias by which every function is called, so that a version can be rolled back.
const Alias = "current"

// Names builds the names of a stack's resources.
type Names struct {
	Stack string

	table string            // an existing table; empty for the stack's own
	live  map[string]string // existing live queues, by sink
}

// Of returns the names of the settings' stack.
func Of(c *config.Config) Names {
	n := Names{Stack: c.Stack, table: c.Table.Name, live: make(map[string]string)}
	for sink, s := range c.Sinks {
		n.live[sink] = s.LiveQueue
	}
	return n
}

// Table is the table's name.
func (n Names) Table() string { return cmp.Or(n.table, n.Stack+"-shards") }

// Bucket is the bucket's name. Bucket names must be unique across all accounts and regions.
func (n Names) Bucket(account, region string) string {
	return n.Stack + "-" + account + "-" + region
}

// Queue is the name of a sink's queue in a lane. dlq recognises the bulk lane by the end of the
// name.
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
// the type of an existing state machine cannot be changed.
func (n Names) StateMachine(sink string, kind config.FlightKind) string {
	return n.Stack + "-" + sink + "-" + string(kind)
}

// Feed is the name of the commit feed's pipe and of the function in it.
func (n Names) Feed() string { return n.Stack + "-feed" }

// FirstRule is the name of the rule that runs prune after a deploy.
func (n Names) FirstRule(sink string) string { return n.Stack + "-" + sink + "-first" }

// FunctionLog is the name of the log group of a sink's function.
func (n Names) FunctionLog(sink string, f Function) string {
	return "/aws/lambda/" + n.Function(sink, f)
}

// StateMachineLog is the name of the log group of a sink's state machines. With this prefix a log
// group needs no resource policy. An account can have only ten of these.
func (n Names) StateMachineLog(sink string) string {
	return "/aws/vendedlogs/states/" + n.Stack + "-" + sink
}

// Alarm is the name of an alarm; sink is empty for an alarm of the stack.
func (n Names) Alarm(sink, kind string) string {
	if sink == "" {
		return n.Stack + "-" + kind
	}
	return n.Stack + "-" + sink + "-" + kind
}

// Role is the name of an operator's role. Roles are global, so the name contains the region.
func (n Names) Role(what, region string) string { return n.Stack + "-" + what + "-" + region }

// Dashboard is the dashboard's name.
func (n Names) Dashboard() string { return n.Stack }
