// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// acknowledged lists the findings of cdk-nag that lull accepts, each with the reason. A path is a
// regular expression.
var acknowledged = []struct{ rule, path, reason string }{
	{
		"AwsSolutions-IAM5", `/Sink-[a-z]+/(Receive|Index|Prune|Dlq)Role/`,
		"keys below a prefix, streams of one log group, and network interfaces, which have no names before they are " +
			"made; rights_test.go lists them all",
	},
	{
		"AwsSolutions-IAM5", `/Sink-[a-z]+/Pipe-[a-z-]+/PipeRole/`,
		"what AWS documents for the source: lists of streams, network interfaces, and logs and a consumer group that " +
			"have no names before the pipe has run",
	},
	{"AwsSolutions-IAM5", `/Sink-[a-z]+/MachineRole/`, "log delivery belongs to no resource"},
	{"AwsSolutions-IAM5", `/(Operator|Reader)/`, "keys below a prefix"},
	{"AwsSolutions-VPC7", `^` + privateStack + `/Network/`, "the network is an example: flow logs are its owner's"},
	{"AwsSolutions-EC23", `^` + privateStack + `/Network/`, "only the addresses of the network itself may come in"},
	{"AwsSolutions-IAM5", `/RolloutRole/`, "versions of one function, which have no numbers before they are deployed"},
	{"AwsSolutions-IAM5", `/FeedRole/`, "streams of one log group"},
	{"AwsSolutions-IAM5", `/SearchableRole/`, "streams of one log group"},
	{"AwsSolutions-IAM5", `/JobRole/`, "streams of one log group; network interfaces belong to no resource"},
	{"AwsSolutions-IAM5", `/FeedPipeRole/`, "lists of streams belong to no resource"},
	{
		"AwsSolutions-SQS3", `/FeedLost/`,
		"it is a dead-letter queue itself, of a pipe; cdk-nag knows those of queues only",
	},
	{
		"AwsSolutions-S1", `/Bucket/`,
		"access logs of the bucket would need a bucket of their own; CloudTrail's data events say the same, where " +
			"somebody wants them",
	},
	{
		"AwsSolutions-SF1", `/Machine-[a-z]+$`,
		"a log line for every state of every flight costs more than the flight; failed ones are logged, and every " +
			"decision is in the functions' logs",
	},
	{
		"AwsSolutions-SF2", `/Machine-[a-z]+$`,
		"traces cost more than the flight; the journal follows a document from end to end",
	},
	{"AwsSolutions-S10", `^` + testStack + `/`, "the emulator of this stack has no TLS"},
	{"AwsSolutions-SQS4", `^` + testStack + `/`, "the emulator of this stack has no TLS"},
	{"AwsSolutions-S10", `^` + stateStack + `/`, "cdk import takes no policies; the deploy after it adds them"},
	{"AwsSolutions-SQS4", `^` + stateStack + `/`, "cdk import takes no policies; the deploy after it adds them"},
	{"AwsSolutions-SQS4", `^` + plantedStack + `/`, "planted: what cdk-nag must find"},
	{"AwsSolutions-SQS3", `^` + plantedStack + `/`, "planted: what cdk-nag must find"},
}

// plantedStack has a queue with two faults.
const plantedStack = "planted"

// judge adds cdk-nag to an app: it writes a report on each stack next to its template.
func judge(app awscdk.App) { awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(nil), nil) }

// synthFaults synthesises plantedStack in its own app.
func synthFaults() {
	app := awscdk.NewApp(&awscdk.AppProps{
		Outdir: jsii.String(filepath.Join(folder, plantedStack)), AnalyticsReporting: jsii.Bool(false),
	})
	awssqs.NewQueue(awscdk.NewStack(app, jsii.String(plantedStack), nil), jsii.String("Queue"), nil)
	judge(app)
	app.Synth(nil)
}

// Each stack of the tests is judged, also each state of docs/transitions.md.
func TestNagFindsNothingThatIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	stackOf(t, fullStack)
	reports, err := filepath.Glob(filepath.Join(folder, "*", "AwsSolutions-*-NagReport.csv"))
	if err != nil {
		t.Fatal(err)
	}
	stacks, err := filepath.Glob(filepath.Join(folder, "*", "*.template.json"))
	if err != nil || len(reports) != len(stacks) || len(stacks) <= len(states) {
		t.Fatalf("got %d reports on %d stacks: %v", len(reports), len(stacks), err)
	}
	used := make([]bool, len(acknowledged))
	judged := 0
	for _, report := range reports {
		for _, row := range rowsOf(t, report) {
			rule, path, compliance := row[0], row[1], row[2]
			judged++
			if compliance == "Compliant" {
				continue
			}
			rule, _, _ = strings.Cut(rule, "[")
			found := false
			for i, a := range acknowledged {
				if rule == a.rule && regexp.MustCompile(a.path).MatchString(path) {
					found, used[i] = true, true
				}
			}
			if !found {
				t.Errorf("%s: %s %s: %s", path, rule, compliance, strings.Join(row[3:], ", "))
			}
		}
	}
	for i, a := range acknowledged {
		if !used[i] {
			t.Errorf("%s at %s is acknowledged and not found", a.rule, a.path)
		}
	}
	if least := 50 * len(states); judged < least {
		t.Errorf("cdk-nag judged %d times, want at least %d: it did not see the stacks", judged, least)
	}
}

// rowsOf returns the rows of a report without its heading.
func rowsOf(t *testing.T, report string) [][]string {
	t.Helper()
	file, err := os.Open(report)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%s has %d rows: %v", report, len(rows), err)
	}
	return rows[1:]
}
