// SPDX-License-Identifier: Apache-2.0

// Package names returns the names of the AWS resources of a stack. The CDK app in infra creates the
// resources with these names, and the command line finds the resources by these names.
package names

import (
	"cmp"
	"strings"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/flight"
)

// Function is the short name of a Lambda function of a stack.
type Function string

// These are the functions that every sink of a stack has.
const (
	Receive Function = "receive"
	Index   Function = "index"
	Prune   Function = "prune"
	DLQ     Function = "dlq"
)

// Feed is the function in the pipe of a commit feed. A stack has at most one, for all sinks.
const Feed Function = "feed"

// Searchable is the function behind the stack's URL. A stack has at most one, for all sinks.
const Searchable Function = "searchable"

// Job is the function that does operators' work by a schedule. A stack has at most one, for all
// sinks.
const Job Function = "job"

// Program names the program of a function: the path of its folder below the folder functions, and
// below a folder of builds. The function index has a program for each kind of sink, such as
// index/opensearch, which links only that kind.
type Program string

// Program returns the program of the function for a kind of sink.
func (f Function) Program(kind string) Program {
	if f == Index {
		return Program(string(f) + "/" + kind)
	}
	return Program(f)
}

// File returns the name of the program as a part of a file name.
func (p Program) File() string { return strings.ReplaceAll(string(p), "/", "-") }

// Functions returns the functions that every sink has.
func Functions() []Function { return []Function{Receive, Index, Prune, DLQ} }

// MegabytesIn returns the memory of the function in a stack with these settings.
func (f Function) MegabytesIn(c *config.Config) int {
	size := c.Memory.Receive
	switch f {
	case Index:
		size = c.Memory.Index
	case Prune:
		size = c.Memory.Prune
	case DLQ:
		size = c.Memory.DLQ
	case Job:
		size = 0
	}
	return cmp.Or(int(size/config.MemoryStep), f.Megabytes())
}

// Megabytes returns the memory that the function has if the settings name no size. The benchmark
// computes costs from this size. Lambda gives a function processor time in proportion to its
// memory: 1,769 MB give one core. The function receive decodes 1,000 messages and writes 32 rows at
// a time. The function index does the same, and sends bulk requests of 5 MB. The other functions
// mostly wait for the network.
func (f Function) Megabytes() int {
	switch f {
	case Index:
		return 1024
	case DLQ, Searchable, Job:
		return 256
	default:
		return 512
	}
}

// Alias is the alias of every function. All callers use the alias, so that a function can go back
// to an earlier version.
const Alias = "current"

// Names builds the names of a stack's resources.
type Names struct {
	Stack string

	table string            // the name of an existing table; empty if the stack creates the table
	live  map[string]string // the names of existing live queues, by sink
}

// Of returns the names for the stack of the settings.
func Of(c *config.Config) Names {
	n := Names{Stack: c.Stack, table: c.Table.Name, live: make(map[string]string)}
	for sink, s := range c.Sinks {
		n.live[sink] = s.LiveQueue
	}
	return n
}

// Table returns the name of the DynamoDB table.
func (n Names) Table() string { return cmp.Or(n.table, n.Stack+"-shards") }

// Bucket returns the name of the S3 bucket. Bucket names must be unique across all accounts and
// regions.
func (n Names) Bucket(account, region string) string {
	return n.Stack + "-" + account + "-" + region
}

// Queue returns the name of the queue of a sink and a lane. The function dlq recognises the bulk
// lane by the end of this name.
func (n Names) Queue(sink string, l flight.Lane) string {
	if l == flight.Live && n.live[sink] != "" {
		return n.live[sink]
	}
	return n.Stack + "-" + sink + "-" + string(l)
}

// DeadQueue returns the name of the dead-letter queue of a sink.
func (n Names) DeadQueue(sink string) string { return n.Stack + "-" + sink + "-dead" }

// Function returns the full name of a Lambda function of a sink.
func (n Names) Function(sink string, f Function) string {
	return n.Stack + "-" + sink + "-" + string(f)
}

// StateMachine returns the name of the state machine of a sink and a kind, Express or Standard. A
// stack always has both, because the type of an existing state machine cannot be changed.
func (n Names) StateMachine(sink string, kind config.FlightKind) string {
	return n.Stack + "-" + sink + "-" + string(kind)
}

// Feed returns the name of the pipe of the commit feed. The function in this pipe has the same
// name.
func (n Names) Feed() string { return n.Stack + "-feed" }

// Searchable returns the name of the function behind the stack's URL.
func (n Names) Searchable() string { return n.Stack + "-searchable" }

// Job returns the name of the function job.
func (n Names) Job() string { return n.Stack + "-job" }

// JobRule returns the name of the EventBridge rule that starts a work of the function job.
func (n Names) JobRule(work string) string { return n.Stack + "-job-" + work }

// FirstRule returns the name of the EventBridge rule that runs the function prune after a
// deployment.
func (n Names) FirstRule(sink string) string { return n.Stack + "-" + sink + "-first" }

// FunctionLog returns the name of the log group of a function.
func (n Names) FunctionLog(sink string, f Function) string {
	return "/aws/lambda/" + n.Function(sink, f)
}

// StateMachineLog returns the name of the log group of the state machines of a sink. A log group
// with this prefix needs no resource policy. An account can have only ten such policies.
func (n Names) StateMachineLog(sink string) string {
	return "/aws/vendedlogs/states/" + n.Stack + "-" + sink
}

// Alarm returns the name of an alarm. An empty sink means an alarm of the whole stack.
func (n Names) Alarm(sink, kind string) string {
	if sink == "" {
		return n.Stack + "-" + kind
	}
	return n.Stack + "-" + sink + "-" + kind
}

// Role returns the name of an IAM role for operators. An account has its roles in all regions, so
// the name contains the region.
func (n Names) Role(what, region string) string { return n.Stack + "-" + what + "-" + region }

// Dashboard returns the name of the dashboard.
func (n Names) Dashboard() string { return n.Stack }
