// SPDX-License-Identifier: Apache-2.0

package stops

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/proof/tree"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/simulation/sim"
	"github.com/lullhq/lull/sink"
)

// way is one way to stop a stack, or a part of it.
type way struct {
	name    string
	traffic traffic
	breaks  breaks
	limit   time.Duration // the time within which an alarm must go off
	// harmless says what happens if nothing stops. The documents are then still written.
	harmless string
}

// The limits for the path of live events, for prune and dlq, and for the bulk queue. threes is
// three intervals of prune, a quarter of an hour. In a resync, messages may wait for hours.
const (
	hot     = 10 * time.Minute
	threes  = 15 * time.Minute
	bulkAge = 7 * time.Hour
)

// calls makes some calls of a function fail with an error. Each entry of the list names a service,
// the beginning of the call and the end of the queue's name.
func calls(function string, err error, which ...string) func(string, fault.Op) error {
	return func(f string, op fault.Op) error {
		for _, w := range which {
			service, rest, _ := strings.Cut(w, " ")
			call, queue, _ := strings.Cut(rest, " ")
			if (function == "" || f == function) && (service == "" || service == string(op.Service)) &&
				strings.HasPrefix(op.Call, call) && strings.HasSuffix(op.Queue, queue) {
				return err
			}
		}
		return nil
	}
}

// rowWrites makes the conditional writes of a function fail.
func rowWrites(function string) func(string, fault.Op) error {
	return func(f string, op fault.Op) error {
		if f == function && op.Service == fault.Table && (op.Transition != 0 || strings.HasPrefix(op.Call, "Mark")) {
			return usecasetest.Denied
		}
		return nil
	}
}

// answers makes the sink give the same answer to every write.
func answers(o sink.Outcome) func(time.Time, sink.Op) (sink.Outcome, bool) {
	return func(time.Time, sink.Op) (sink.Outcome, bool) { return o, true }
}

var (
	forbidden = sink.Outcome{Kind: sink.Configuration, Status: 403, Reason: "security_exception"}
	throttled = sink.Outcome{Kind: sink.Throttled, Status: 429, Reason: "es_rejected_execution"}
)

// rejects is a sink that rejects only the documents that the test marks as bad.
func rejects(_ time.Time, op sink.Op) (sink.Outcome, bool) {
	refusal := sink.Outcome{Kind: sink.Rejected, Status: 400, Reason: "mapper_parsing_exception"}
	return refusal, strings.Contains(string(op.Doc), "#bad-")
}

// scenario is how a missing permission shows: the calls that need the permission, and the traffic
// that makes these calls.
type scenario struct {
	traffic  traffic
	breaks   breaks
	harmless string
}

const (
	// An alarm on log groups without new entries would cost $0.80 a month and sink.
	blind      = "lull's own metrics are missing: alarms on AWS's remain"
	rarely     = "needed only while something else is down: messages come back instead"
	collecting = "objects stay until somebody has the right again"
)

func failing(function string, which ...string) scenario {
	return scenario{breaks: breaks{fails: calls(function, usecasetest.Denied, which...)}}
}

func (s scenario) with(t traffic) scenario      { s.traffic = t; return s }
func (s scenario) but(harmless string) scenario { s.harmless = harmless; return s }

// permissions says what each action of a role is for, and on which resource if that matters. The
// first pattern that matches "role action on resource" applies.
var permissions = []struct {
	of *regexp.Regexp
	scenario
}{
	{re(`^(receive|index|prune|dlq) logs:`), scenario{harmless: blind}},
	{
		re(`^receive sqs:(ReceiveMessage|GetQueueAttributes) on live`),
		scenario{breaks: breaks{unpolled: []string{"search-live"}}},
	},
	{
		re(`^receive sqs:(ReceiveMessage|GetQueueAttributes) on bulk`),
		scenario{traffic: bulk, breaks: breaks{unpolled: []string{"search-bulk"}}},
	},
	{
		re(`^receive sqs:DeleteMessage on live`),
		scenario{traffic: twice, breaks: breaks{undeleted: []string{"search-live"}}},
	},
	{
		re(`^receive sqs:DeleteMessage on bulk`),
		scenario{harmless: "resyncs that are done come back, and are judged again"},
	},
	{re(`^(receive|index) sqs:ChangeMessageVisibility`), failing("receive", "queue Change").but(rarely)},
	{re(`^receive sqs:SendMessage on live`), failing("receive", "queue Send live").with(soon)},
	{re(`^receive sqs:SendMessage on bulk`), scenario{harmless: "only resyncs that wait until later need it"}},
	{re(`^receive s3:PutObject on bucket, .flights`), failing("receive", "bucket PutManifest")},
	{re(`^receive s3:PutObject on bucket, .archive`), failing("receive", "bucket PutArchive")},
	{re(`^receive s3:PutObject on bucket, .scheduled`), failing("receive", "bucket PutScheduled").with(later)},
	{
		re(`^receive dynamodb:BatchGetItem`),
		failing("receive", "table Read").but("only redelivered messages read rows first"),
	},
	{re(`^receive dynamodb:UpdateItem`), scenario{breaks: breaks{fails: rowWrites("receive")}}},
	{re(`^receive sqs:SendMessage on dead`), failing("receive", "queue Send dead").with(junk)},
	{re(`^receive states:StartExecution`), failing("receive", "states Start")},
	{
		re(`^(receive|dlq) (s3:GetObject|kms:.*) on those`),
		scenario{harmless: "only bodies behind pointers wait: `failing` for receive"},
	},
	{
		re(`s3:ListBucket on their buckets`),
		scenario{harmless: "a missing object looks like a denied one, and its event waits"},
	},
	{
		re(`^receive kms:Decrypt`),
		scenario{
			breaks: breaks{
				unpolled: []string{"search-live", "search-bulk"},
				fails:    calls("receive", usecasetest.Denied, "table ", "bucket "),
			},
		},
	},
	{re(`^receive kms:GenerateDataKey`), failing("receive", "bucket Put", "queue Send")},
	{re(`^(receive) kms:(DescribeKey|Encrypt|ReEncrypt.*)`), failing("receive", "table ")},

	{
		re(`^index lambda:InvokeFunction`),
		scenario{harmless: "documents of its collection wait, unclaimed, and `enricher-away` says so"},
	},
	{re(`^index s3:PutObject`), failing("index", "bucket PutNext").but(rarely)},
	{re(`^index states:StartExecution`), failing("index", "states Start").but(rarely)},
	{re(`^index s3:DeleteObject`), failing("index", "bucket DeleteManifest").but("prune deletes the manifests")},
	{re(`^index s3:GetObject on bucket`), failing("index", "bucket GetManifest")},
	{
		re(`^index sqs:DeleteMessage`),
		failing(
			"index",
			"queue Delete",
		).but("messages come back after they were written, and receive acknowledges them"),
	},
	{
		re(`^(index|dlq) s3:ListBucket on bucket`),
		scenario{harmless: "the turn of a flight that is done fails instead of ending"},
	},
	{re(`^index dynamodb:BatchGetItem`), failing("index", "table Read")},
	{re(`^index dynamodb:UpdateItem`), scenario{breaks: breaks{fails: rowWrites("index")}}},
	{
		re(`^index sqs:SendMessage on dead`),
		scenario{
			traffic: rejected,
			breaks:  breaks{write: rejects, fails: calls("index", usecasetest.Denied, "queue Send")},
		},
	},
	{
		re(`^index (secretsmanager:|kms:(Decrypt|DescribeKey) on those keys, through secretsmanager|` +
			`es:ESHttpPost on domain, ./_bulk|aoss:)`),
		scenario{breaks: breaks{write: answers(forbidden)}},
	},
	{re(`^index es:`), scenario{harmless: "only pings, samples and questions about refusals need it"}},
	{re(`^index (s3:GetObject|kms:.*) on those`), scenario{traffic: references, breaks: breaks{payloads: true}}},
	{re(`^index ec2:`), scenario{breaks: breaks{fates: map[string]sim.Fate{"index": sim.Denied}}}},
	{re(`^index kms:Decrypt`), failing("index", "bucket Get", "table ")},
	{
		re(`^index kms:GenerateDataKey`),
		scenario{
			traffic: rejected,
			breaks:  breaks{write: rejects, fails: calls("index", usecasetest.Denied, "queue Send", "bucket Put")},
		},
	},
	{re(`^index kms:`), failing("index", "table ")},

	{
		re(`^prune s3:(DeleteObject|GetObject) on bucket, .scheduled`),
		failing("prune", "bucket GetScheduled", "table DeleteScheduled").with(later),
	},
	{re(`^prune s3:(DeleteObject|GetObject|PutObject) on bucket`), scenario{harmless: collecting}},
	{re(`^prune sqs:SendMessage on live`), failing("prune", "queue Send live").with(later)},
	{re(`^prune sqs:SendMessage on bulk`), scenario{harmless: "only resyncs that wait until later need it"}},
	{re(`^prune s3:ListBucket`), failing("prune", "bucket List")},
	{re(`^prune dynamodb:BatchGetItem`), failing("prune", "table Read")},
	{
		re(`^prune dynamodb:(DeleteItem|GetItem)`),
		failing("prune", "table DeleteScheduled", "bucket GetScheduled").with(later),
	},
	{re(`^prune dynamodb:Scan`), failing("prune", "table Scan")},
	{re(`^prune dynamodb:UpdateItem`), scenario{breaks: breaks{fails: rowWrites("prune")}}},
	{re(`^prune states:StartExecution`), failing("prune", "states Start")},
	{re(`^prune dynamodb:Query`), failing("prune", "table List")},
	{re(`^prune kms:(Decrypt|DescribeKey|Encrypt|ReEncrypt.*) `), failing("prune", "table ")},
	{re(`^prune kms:GenerateDataKey`), failing("prune", "queue Send", "bucket Put").with(later)},

	{
		re(`^dlq sqs:(ReceiveMessage|GetQueueAttributes)`),
		scenario{traffic: junk, breaks: breaks{unpolled: []string{"search-dead"}}},
	},
	{
		re(`^dlq sqs:DeleteMessage`),
		scenario{
			traffic:  junk,
			breaks:   breaks{undeleted: []string{"search-dead"}},
			harmless: "dead letters come back, and are found parked: `dead-letters` stays on",
		},
	},
	{
		re(`^dlq sqs:ChangeMessageVisibility`),
		failing("dlq", "queue Change").but("a dead letter whose row is leased comes back at once"),
	},
	{re(`^dlq s3:PutObject`), failing("dlq", "bucket PutLetter").with(junk)},
	{re(`^dlq sqs:SendMessage on live`), failing("dlq", "queue Send live").with(moved)},
	{re(`^dlq sqs:SendMessage on bulk`), scenario{harmless: "only resyncs that never ran need it"}},
	{re(`^dlq dynamodb:BatchGetItem`), failing("dlq", "table Read").with(moved)},
	{re(`^dlq dynamodb:(GetItem|UpdateItem)`), failing("dlq", "bucket PutLetter").with(junk)},
	{re(`^dlq kms:(Decrypt)`), scenario{traffic: junk, breaks: breaks{unpolled: []string{"search-dead"}}}},
	{re(`^dlq kms:`), failing("dlq", "bucket PutLetter").with(junk)},

	{
		re(`^state machine lambda:InvokeFunction`),
		scenario{breaks: breaks{fates: map[string]sim.Fate{"index": sim.Denied}}},
	},
	{re(`^state machine logs:`), scenario{harmless: "the log of failed executions is missing"}},
}

func re(s string) *regexp.Regexp { return regexp.MustCompile(s) }

// permissionWays returns the ways to remove one permission from one role. The permissions come from
// docs/functions.md, which is generated from the templates.
func permissionWays(t testing.TB) (all []way) {
	t.Helper()
	_, table, _ := strings.Cut(tree.Text(t, "docs/functions.md"), "<!-- rights:")
	table, _, _ = strings.Cut(table, "<!-- end of rights -->")
	for line := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		for role := range strings.SplitSeq(strings.TrimPrefix(cells[0], "| "), ", ") {
			if !slices.Contains([]string{"receive", "index", "prune", "dlq", "state machine"}, role) {
				continue
			}
			service := ""
			for action := range strings.SplitSeq(strings.ReplaceAll(cells[1], "`", ""), ", ") {
				if s, a, ok := strings.Cut(action, ":"); ok {
					service, action = s, a
				}
				for on := range strings.SplitSeq(cells[2], "; ") {
					all = append(all, permission(t, role, service+":"+action, on))
				}
			}
		}
	}
	if len(all) < 100 {
		t.Fatalf("%d permissions: the page is read in the wrong way", len(all))
	}
	return all
}

func permission(t testing.TB, role, action, on string) way {
	t.Helper()
	name := role + " " + action + " on " + on
	for _, p := range permissions {
		if !p.of.MatchString(name) {
			continue
		}
		w := way{
			name:     "`" + action + "` of " + role + ", " + on,
			traffic:  p.traffic,
			breaks:   p.breaks,
			limit:    hot,
			harmless: p.harmless,
		}
		switch {
		case strings.Contains(action, "logs:") && role != "state machine":
			w.breaks.unlogged = role
		case role == "prune", role == "dlq", p.traffic == later:
			w.limit = threes
		case p.traffic == bulk:
			w.limit = bulkAge
		}
		return w
	}
	t.Fatalf("%s: say in permissions what stops without it", name)
	return way{}
}

// otherWays returns the ways to break services and functions, and to disable parts of the stack.
func otherWays() []way {
	services := func(err error, which ...string) breaks { return breaks{fails: calls("", err, which...)} }
	slow := func() func(time.Time, sink.Op) (sink.Outcome, bool) {
		var next time.Time
		return func(now time.Time, _ sink.Op) (sink.Outcome, bool) { // accepts one document in two minutes
			if now.Before(next) {
				return throttled, true
			}
			next = now.Add(2 * time.Minute)
			return sink.Outcome{}, false
		}
	}
	all := []way{
		{
			name:   "SQS delivers nothing",
			breaks: breaks{unpolled: []string{"search-live", "search-bulk", "search-dead"}},
		},
		{name: "SQS takes no call of the functions", breaks: services(errAway, "queue "), traffic: junk},
		{name: "DynamoDB does not answer", breaks: services(errAway, "table ")},
		{name: "DynamoDB throttles every call", breaks: services(shard.ErrThrottled, "table ")},
		{name: "S3 does not answer", breaks: services(errAway, "bucket ")},
		{name: "Step Functions starts nothing", breaks: services(errAway, "states ")},
		{name: "the state machine is deleted", breaks: services(usecasetest.Denied, "states ")},
		{name: "the sink does not answer", breaks: services(errAway, "sink ")},
		{name: "the sink answers everything with 429", breaks: breaks{write: answers(throttled)}},
		{name: "the sink takes half of what comes", breaks: breaks{write: slow()}},
		{name: "the sink answers everything with 403", breaks: breaks{write: answers(forbidden)}},
		{
			name:   "Secrets Manager does not answer",
			breaks: breaks{write: answers(sink.Outcome{Kind: sink.Configuration, Reason: "no_credentials"})},
		},
		{
			name:   "the sink accepts and keeps nothing",
			breaks: breaks{write: answers(sink.Outcome{Kind: sink.Applied, Status: 200})},
			limit:  threes,
		},
		{name: "the mapping of the live queue is disabled", breaks: breaks{unpolled: []string{"search-live"}}},
		{
			name:    "the mapping of the bulk queue is disabled",
			traffic: bulk,
			breaks:  breaks{unpolled: []string{"search-bulk"}},
			limit:   bulkAge,
		},
		{
			name:    "the mapping of the dead-letter queue is disabled",
			traffic: junk,
			breaks:  breaks{unpolled: []string{"search-dead"}},
			limit:   threes,
		},
		{name: "dlq returns dead letters", traffic: moved, limit: threes},
		{
			name:   "prune's rule is disabled",
			breaks: breaks{fates: map[string]sim.Fate{"prune": sim.Denied}},
			limit:  threes,
		},
		{name: "the commit feed's function or its bus refuses every call", breaks: breaks{feed: true}},
	}
	named := len(all)
	for _, f := range []string{"receive", "index", "prune", "dlq"} {
		w := way{traffic: live, limit: hot}
		if f == "prune" || f == "dlq" {
			w.limit = threes
		}
		if f == "dlq" {
			w.traffic = junk
		}
		for fate, says := range map[sim.Fate]string{
			sim.Throws: "fails always, or is killed while it starts", sim.Hangs: "runs into its time-out always",
			sim.Refuses: "refuses its settings", sim.Throttled: "has no concurrency",
		} {
			w.name, w.breaks = f+" "+says, breaks{fates: map[string]sim.Fate{f: fate}}
			all = append(all, w)
		}
		if f == "dlq" {
			continue // reads no clock, only the times of the row
		}
		for by, says := range map[time.Duration]string{24 * time.Hour: "a day ahead", -24 * time.Hour: "a day behind"} {
			if f == "receive" && by > 0 {
				by += 7 * 24 * time.Hour // a smaller error does not show in deliveries before the stop
				says = "eight days ahead"
			}
			w.name, w.breaks = "the clock of "+f+" is "+says, breaks{off: f, by: by}
			all = append(all, w)
		}
	}
	for i := range all {
		if all[i].limit == 0 {
			all[i].limit = hot
		}
	}
	slices.SortStableFunc(all[named:], func(a, b way) int { return strings.Compare(a.name, b.name) })
	return all
}
