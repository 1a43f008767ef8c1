// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/deploy/names"
)

// rightsDoc is the page that lists every right, between two marks. The first mark says how to
// rewrite the list.
var (
	rightsDoc   = filepath.Join("..", "docs", "functions.md")
	rightsBegin = []byte("<!-- rights: go test ./infra -run TestRights -rewrite -->\n")
	rightsEnd   = []byte("<!-- end of rights -->\n")
)

// documented lists the roles in the order of the page. Each entry has the end of the role's path.
var documented = []struct{ path, name string }{
	{"/ReceiveRole", "receive"},
	{"/IndexRole", "index"},
	{"/PruneRole", "prune"},
	{"/DlqRole", "dlq"},
	{"/MachineRole", "state machine"},
	{"/Pipe-items/PipeRole", "pipe from DynamoDB"},
	{"/Pipe-clicks/PipeRole", "pipe from Kinesis"},
	{"/Pipe-pages/PipeRole", "pipe from Amazon MSK"},
	{"/Pipe-secret-pages/PipeRole", "pipe from Amazon MSK"},
	{"/Pipe-own/PipeRole", "pipe from another Kafka"},
	{"/Pipe-rabbit/PipeRole", "pipe from Amazon MQ"},
	{"/Pipe-active/PipeRole", "pipe from Amazon MQ"},
	{"/JobRole", "job"},
	{"/RolloutRole", "rollout"},
	{"/Publisher", "publisher"},
	{"/Reader", "reader"},
	{"/Operator", "operator"},
}

// onlyWhere lists the statements that only some stacks have, and says which stacks have them. All
// other statements are in every stack.
var onlyWhere = map[string]string{
	"LoadReferences":           "`payload.allow` lists places",
	"MissReferences":           "`payload.allow` lists places",
	"LoadFetched":              "`fetch.url` is in S3",
	"MissFetched":              "`fetch.url` is in S3",
	"ReadFetched":              "other keys encrypt those objects",
	"ReadPassword":             "`auth.secretARN` is set",
	"WriteSink":                "`auth.kind` is `sigv4`",
	"ProbeSink":                "`auth.kind` is `sigv4`",
	"WriteSinkServerless":      "`auth.kind` is `sigv4`, `serverless: true`",
	"AskEnrichers":             "`enrich.kind` is `lambda`",
	"ReadHeaders":              "`fetch.headers.secretARN` or `enrich.headers.secretARN` is set",
	"DecryptHeaders":           "another key encrypts that secret",
	"NetworkInterface":         "index runs in a VPC",
	"ReadAlarms":               "`LULL_ROLLOUT` shifts step by step",
	"ReadConcurrency":          "`LULL_ROLLOUT` shifts step by step",
	"ShiftAliases":             "`LULL_ROLLOUT` shifts step by step",
	"Archive":                  "`archive.keep` is set",
	"ReadArchive":              "`archive.keep` is set",
	"Forget":                   "`archive.keep` is set",
	"ForgetVersions":           "`archive.keep` is set",
	"CanaryRows":               "`canary.every` is set",
	"PublishCanary":            "`canary.every` is set",
	"VerifyRows":               "a collection has `verify`",
	"RepairRows":               "a collection has `verify`",
	"Touch":                    "a collection has `verify`",
	"RepairSink":               "a collection has `verify`, and `auth.kind` is `sigv4`",
	"ResolveSink":              "a collection has `verify`, and `auth.kind` is `sigv4`",
	"ReadSink":                 "`auth.kind` is `sigv4`",
	"ReadCollectionServerless": "`auth.kind` is `sigv4`, `serverless: true`",
	"ReadDatabase":             "`auth.kind` is `sigv4`, on RDS",
	"UseKey":                   "you set your own key",
	"UseTableKey":              "you set your own key",
	"ReadKey":                  "you set your own key",
	"ReadReferences":           "other keys encrypt those places",
	"DecryptPassword":          "another key encrypts the secret",
}

// places describes resources in the words of the page. For a resource, the first match is used.
var places = []struct {
	resource *regexp.Regexp
	words    string
}{
	{regexp.MustCompile(`^\{queue [a-z-]+-(live|bulk)\}$`), "${1} queue"},
	{regexp.MustCompile(`^\{queue [a-z-]+-dead\}$`), "dead-letter queue"},
	{regexp.MustCompile(`^\{globaltable [a-z-]+\}$`), "table"},
	{regexp.MustCompile(`^\{globaltable [a-z-]+\}/index/([a-z]+)$`), "table's index `${1}`"},
	{regexp.MustCompile(`^\{bucket [^}]+\}[^}]*\}[^}]*\}$`), "bucket"},
	{regexp.MustCompile(`^\{bucket [^}]+\}[^}]*\}[^}]*\}/(.+)$`), "bucket, `${1}`"},
	{regexp.MustCompile(`^arn:.*:stateMachine:[a-z-]+$`), "state machine"},
	{regexp.MustCompile(`^arn:.*:s3:::[a-z-]+/.*\*$`), "those places"},
	{regexp.MustCompile(`^arn:.*:s3:::[a-z-]+$`), "their buckets"},
	{regexp.MustCompile(`^arn:.*:secretsmanager:.*:secret:.*$`), "the secret"},
	{regexp.MustCompile(`^arn:.*:lambda:.*:function:embed:live$`), "the function, by alias"},
	{regexp.MustCompile(`^arn:.*:es:.*:domain/[a-z-]+$`), "domain"},
	{regexp.MustCompile(`^arn:.*:es:.*:domain/[a-z-]+(/.*)$`), "domain, `${1}`"},
	{regexp.MustCompile(`^arn:.*:aoss:.*:collection/.*$`), "collection"},
	{regexp.MustCompile(`^arn:.*:logs:.*:log-group:/aws/lambda/.*-(receive|index|prune|dlq|job):\*$`), "log group of ${1}"},
	{regexp.MustCompile(`^arn:.*:kms:.*:key/9.*$`), "those keys"},
	{regexp.MustCompile(`^arn:.*:kms:.*:key/.*$`), "the key"},
	{regexp.MustCompile(`^\{[a-z]+/.*/IndexAlias\}$`), "index, by alias"},
	{regexp.MustCompile(`^arn:.*:dynamodb:.*:table/.*/stream/.*$`), "the stream"},
	{regexp.MustCompile(`^arn:.*:kinesis:.*:stream/.*/consumer/.*$`), "the consumer"},
	{regexp.MustCompile(`^arn:.*:kinesis:.*:stream/[^/]*$`), "the stream"},
	{regexp.MustCompile(`^arn:.*:kafka:.*:(cluster|topic)/.*$`), "the ${1}"},
	{regexp.MustCompile(`^arn:.*:kafka:.*:group/.*$`), "the consumer group"},
	{regexp.MustCompile(`^arn:.*:mq:.*:broker:.*$`), "the broker"},
	{regexp.MustCompile(`^arn:.*:log-group:\*$`), "log groups"},
	{regexp.MustCompile(`^arn:.*:cloudwatch:.*:alarm:.*$`), "the alarms that end a rollout"},
	{regexp.MustCompile(`^\{function [a-z-]+\}$`), "functions"},
	{regexp.MustCompile(`^\{function [a-z-]+\}:\*$`), "their versions"},
	{regexp.MustCompile(`^\*$`), "everything (AWS has it no narrower)"},
}

// line is one right on the page: one statement of a role.
type line struct{ role, sid, actions, on string }

// right returns the cells of the line after the role.
func (l line) right() string {
	where := l.where()
	if where == everyPipe {
		where = "" // the role says it
	}
	return fmt.Sprintf("%s | %s | %s |\n", l.actions, l.on, where)
}

// everyPipe says when a pipe has a statement that all pipes with the same kind of source have.
const everyPipe = "there is such a pipe"

// ofPipes says when a pipe has a statement that only some pipes have.
var ofPipes = map[string]string{
	"ReadTopic":        "there is no secret: the pipe logs in as its role",
	"ReadPassword":     "there is a secret",
	"Subscribe":        "it reads as a consumer",
	"NetworkInterface": "the brokers are in a VPC",
	"DecryptSource":    "another key encrypts the stream or the secret",
	"UseKey":           "you set your own key",
}

// where says which stacks have the statement. It returns "" if every stack has it.
func (l line) where() string {
	if strings.HasPrefix(l.role, "pipe ") {
		return cmp.Or(ofPipes[l.sid], everyPipe)
	}
	return onlyWhere[l.sid]
}

// lines lists the rights of every role of a stack. A right that several sinks have is listed once.
func lines(t *testing.T, s *template) []line {
	t.Helper()
	var all []line
	for _, g := range s.grants() {
		i := slices.IndexFunc(documented, func(d struct{ path, name string }) bool {
			return strings.HasSuffix(g.role, d.path)
		})
		if i < 0 {
			t.Errorf("%s is a role that %s does not know", g.role, rightsDoc)
			continue
		}
		l := line{role: documented[i].name, sid: g.sid, actions: actionsInWords(g.actions)}
		if strings.Contains(l.actions, "aoss:") {
			l.sid += "Serverless"
		}
		var on []string
		for _, resource := range g.on {
			on = append(on, placeInWords(t, g.role, resource))
		}
		slices.Sort(on)
		l.on = strings.Join(slices.Compact(on), "; ")
		if via := items(dig(g.statement, "Condition", "StringEquals", "kms:ViaService")); via != nil {
			var services []string
			for _, v := range via {
				service, _, _ := strings.Cut(s.text(v), ".")
				services = append(services, service)
			}
			l.on += ", through " + strings.Join(services, ", ")
		} else if l.sid == "Jobs" && strings.Contains(s.only(g.statement), `"dynamodb:LeadingKeys"`) {
			l.on += ", rows of jobs"
		} else if l.sid == "CanaryRows" && strings.Contains(s.only(g.statement), "lull-canary") {
			l.on += ", rows of the canary's document, of jobs and of the sinks' health"
		} else if l.sid == "RepairRows" && strings.Contains(s.only(g.statement), `"dynamodb:LeadingKeys"`) {
			l.on += ", rows of the verified collections and of the sinks' health"
		} else if l.sid == "WriteRows" && strings.Contains(s.only(g.statement), `"dynamodb:LeadingKeys"`) {
			l.on += ", rows of the sink"
		} else if g.statement["Condition"] != nil {
			t.Errorf("%s: %s has a condition that %s does not show: %s", g.role, l.sid, rightsDoc, s.only(g.statement))
		}
		if !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	return all
}

// actionsInWords lists actions, and names the service of consecutive actions once: `s3:GetObject`,
// `PutObject`.
func actionsInWords(actions []string) string {
	var words []string
	last := ""
	for _, a := range actions {
		service, action, _ := strings.Cut(a, ":")
		if service == last {
			a = action
		}
		last = service
		words = append(words, "`"+a+"`")
	}
	return strings.Join(words, ", ")
}

func placeInWords(t *testing.T, path, resource string) string {
	t.Helper()
	for _, p := range places {
		if p.resource.MatchString(resource) {
			return p.resource.ReplaceAllString(resource, p.words)
		}
	}
	t.Errorf("%s: %s has no word in %s", path, resource, rightsDoc)
	return resource
}

// rightsTable returns the table of the page. Functions with the same right share a row, and so do
// pipes and the roles of the command line. Package stops reads the rows of the functions and the
// state machine.
func rightsTable(all []line) string {
	var rows []string
	roles := map[string][]string{}
	for i, d := range documented {
		if i > 0 && documented[i-1].name == d.name {
			continue // two pipes with the same kind of source
		}
		for _, sid := range order(all) {
			for _, l := range all {
				if l.role != d.name || l.sid != sid {
					continue
				}
				row := sharing(l.role) + " | " + l.right()
				if roles[row] == nil {
					rows = append(rows, row)
				}
				if !slices.Contains(roles[row], l.role) {
					roles[row] = append(roles[row], l.role)
				}
			}
		}
	}
	table := "| role | actions | on | only if |\n|---|---|---|---|\n"
	for _, row := range rows {
		_, right, _ := strings.Cut(row, " | ")
		table += "| " + strings.ReplaceAll(strings.Join(roles[row], ", "), ", pipe from", ",") + " | " + right
	}
	return table
}

// sharing names the roles that share rows with a role.
func sharing(role string) string {
	switch {
	case role == "receive", role == "index", role == "prune", role == "dlq":
		return "functions"
	case strings.HasPrefix(role, "pipe "):
		return "pipes"
	case role == "publisher", role == "reader", role == "operator":
		return "command line"
	}
	return role
}

// The page is generated from the templates, so that they cannot differ.
func TestRightsAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	plain := lines(t, stackOf(t, plainStack))
	for _, l := range plain {
		if l.where() != "" {
			t.Errorf("%s of %s is in every stack, not only where %s", l.sid, l.role, l.where())
		}
	}
	all := slices.Clone(plain)
	for _, stack := range []string{fullStack, serverlessStack, jobStack, verifyStack} {
		for _, l := range lines(t, stackOf(t, stack)) {
			if slices.Contains(all, l) {
				continue
			}
			if l.where() == "" && l.role != "job" { // plainStack has no job
				t.Errorf("%s: %s of %s is another than that of %s: %v", stack, l.sid, l.role, plainStack, l)
			}
			all = append(all, l)
		}
	}
	table := rightsTable(all)
	page, err := os.ReadFile(rightsDoc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := bytes.Cut(page, rightsBegin)
	is, after, ended := bytes.Cut(rest, rightsEnd)
	if !begun || !ended {
		t.Fatalf("%s has not both of %q and %q", rightsDoc, rightsBegin, rightsEnd)
	}
	if *rewrite {
		is = []byte(table)
		if err := os.WriteFile(rightsDoc, slices.Concat(before, rightsBegin, is, rightsEnd, after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(is) != table {
		t.Errorf("the rights differ from those in %s (review them, then go test -rewrite):\n%s", rightsDoc, table)
	}
}

// The end-to-end tests remove each right in turn. These rights must match the templates.
func TestRightsAreThoseOfTheSimulatedRoles(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join("..", "e2e", "iam", "functions_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	simulated := make(map[string]bool)
	function := map[string]string{"Receive": "receive", "Index": "index", "DLQ": "dlq", "Prune": "prune"}
	tried := regexp.MustCompile(`\{names\.(\w+), "(\w+)", "(\w+:\w+)"\}`)
	for _, m := range tried.FindAllStringSubmatch(string(source), -1) {
		simulated[function[m[1]]+" "+m[2]+" "+m[3]] = true
	}
	for _, m := range regexp.MustCompile(`\n\t\t\{"(\w+)", "(\w+:\w+)", `).FindAllStringSubmatch(string(source), -1) {
		simulated["prune "+m[1]+" "+m[2]] = true
	}
	deployed := make(map[string]bool)
	for _, stack := range []string{plainStack, fullStack} {
		for _, g := range stackOf(t, stack).grants() {
			i := slices.IndexFunc(documented, func(d struct{ path, name string }) bool {
				return strings.HasSuffix(g.role, d.path)
			})
			f := documented[i].name
			if !slices.Contains(names.Functions(), names.Function(f)) || g.sid == "Log" || g.sid == "Consume" {
				continue // not listed there: AWS makes these calls in the function's name
			}
			for _, action := range g.actions {
				right := f + " " + g.sid + " " + action
				deployed[right] = true
				if stack == plainStack && !simulated[right] {
					t.Errorf("e2e/iam takes %s from no role", right)
				}
			}
		}
	}
	for right := range simulated {
		if !deployed[right] && !strings.Contains(right, " Consume ") {
			t.Errorf("e2e/iam takes away %s, which no role has", right)
		}
	}
}

// order lists the names of the statements. The statements of every stack come first.
func order(all []line) []string {
	var sids []string
	for _, always := range []bool{true, false} {
		var part []string
		for _, l := range all {
			if (l.where() == "") == always && !slices.Contains(part, l.sid) {
				part = append(part, l.sid)
			}
		}
		slices.Sort(part)
		sids = append(sids, part...)
	}
	return sids
}
