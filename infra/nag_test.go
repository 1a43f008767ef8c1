package infra

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
}

// TestNagFindsNothingThatIsNotAcknowledged reads the reports that cdk-nag writes next to the
// template.
func TestNagFindsNothingThatIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	stackOf(t, fullStack)
	reports, err := filepath.Glob(filepath.Join(folder, "out", "AwsSolutions-*"+fullStack+"*.csv"))
	if err != nil || len(reports) != 1 {
		t.Fatalf("got reports %v: %v", reports, err)
	}
	file, err := os.Open(reports[0])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	used := make([]bool, len(acknowledged))
	judged := 0
	for _, row := range rows[1:] {
		rule, path, compliance := row[0], row[1], row[2]
		judged++
		if compliance == "Compliant" {
			continue
		}
		found := false
		for i, a := range acknowledged {
			rule, _, _ := strings.Cut(rule, "[")
			if rule == a.rule && regexp.MustCompile(a.path).MatchString(path) {
				found, used[i] = true, true
			}
		}
		if !found {
			t.Errorf("%s: %s %s: %s", path, rule, compliance, strings.Join(row[3:], ", "))
		}
	}
	for i, a := range acknowledged {
		if !used[i] {
			t.Errorf("%s at %s is acknowledged and not found", a.rule, a.path)
		}
	}
	if judged < 50 {
		t.Errorf("cdk-nag judged %d times: it did not see the stack", judged)
	}
}
