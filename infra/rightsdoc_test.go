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
)

// rightsDoc is the page that lists every right, between two marks, and how it is written.
var (
	rightsDoc   = filepath.Join("..", "docs", "functions.md")
	rightsBegin = []byte("<!-- rights: go test ./infra -run TestRights -rewrite -->\n")
	rightsEnd   = []byte("<!-- end of rights -->\n")
)

// documented are the roles in the order of the page, by the end of their path.
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
	{"/Publisher", "publisher"},
	{"/Reader", "reader"},
	{"/Operator", "operator"},
}

// onlyWhere says which statements a stack may do without, and what brings them. All others are in
// every stack.
var onlyWhere = map[string]string{
	"LoadReferences":      "`payload.allow` lists places",
	"MissReferences":      "`payload.allow` lists places",
	"LoadFetched":         "`fetch.url` is in S3",
	"MissFetched":         "`fetch.url` is in S3",
	"ReadFetched":         "other keys encrypt those objects",
	"ReadPassword":        "`auth.secretARN` is set",
	"WriteSink":           "`auth.kind` is `sigv4`",
	"ProbeSink":           "`auth.kind` is `sigv4`",
	"WriteSinkServerless": "`auth.kind` is `sigv4`, `serverless: true`",
	"AskEnrichers":        "`enrich.kind` is `lambda`",
	"ReadHeaders":         "`fetch.headers.secretARN` or `enrich.headers.secretARN` is set",
	"DecryptHeaders":      "another key encrypts that secret",
	"NetworkInterface":    "index runs in a VPC",
	"Archive":             "`archive.keep` is set",
	"ReadArchive":         "`archive.keep` is set",
	"Forget":              "`archive.keep` is set",
	"ForgetVersions":      "`archive.keep` is set",
	"UseKey":              "there is a key of yours",
	"UseTableKey":         "there is a key of yours",
	"ReadKey":             "there is a key of yours",
	"ReadReferences":      "other keys encrypt those places",
	"DecryptPassword":     "another key encrypts the secret",
}

// places bring a resource into the page's words. The first that fits holds.
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
	{regexp.MustCompile(`^arn:.*:logs:.*:log-group:/aws/lambda/.*-(receive|index|prune|dlq):\*$`), "log group of ${1}"},
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
	{regexp.MustCompile(`^\*$`), "everything (AWS has it no narrower)"},
}

// line is one right in the page: a statement of a role.
type line struct{ role, sid, actions, on string }

func (l line) String() string {
	where := l.where()
	return fmt.Sprintf("| %s | `%s` | %s | %s | %s |\n", l.role, strings.TrimSuffix(l.sid, "Serverless"), l.actions,
		l.on, where)
}

// ofPipes say which statements a pipe may do without.
var ofPipes = map[string]string{
	"ReadTopic":        "there is no secret: the pipe logs in as its role",
	"ReadPassword":     "there is a secret",
	"Subscribe":        "it reads as a consumer",
	"NetworkInterface": "the brokers are in a VPC",
	"DecryptSource":    "another key encrypts the stream or the secret",
	"UseKey":           "there is a key of yours",
}

// where is what brings the statement; empty where every stack has it.
func (l line) where() string {
	if strings.HasPrefix(l.role, "pipe ") {
		return cmp.Or(ofPipes[l.sid], "there is such a pipe")
	}
	return onlyWhere[l.sid]
}

// lines are the rights of every role of a stack, those of several sinks once.
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
		} else if g.statement["Condition"] != nil {
			t.Errorf("%s: %s has a condition that %s does not show: %s", g.role, l.sid, rightsDoc, s.only(g.statement))
		}
		if !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	return all
}

// actionsInWords writes a service once: `s3:GetObject`, `PutObject`.
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

// The page is written from the templates, so that neither can leave the other behind.
func TestRightsAreThoseOfThePage(t *testing.T) {
	t.Parallel()
	plain := lines(t, stackOf(t, plainStack))
	for _, l := range plain {
		if l.where() != "" {
			t.Errorf("%s of %s is in every stack, not only where %s", l.sid, l.role, l.where())
		}
	}
	all := slices.Clone(plain)
	for _, stack := range []string{fullStack, serverlessStack} {
		for _, l := range lines(t, stackOf(t, stack)) {
			if slices.Contains(all, l) {
				continue
			}
			if l.where() == "" {
				t.Errorf("%s: %s of %s is another than that of %s: %v", stack, l.sid, l.role, plainStack, l)
			}
			all = append(all, l)
		}
	}
	var table bytes.Buffer
	table.WriteString("| role | statement | actions | on | only where |\n|---|---|---|---|---|\n")
	for i, d := range documented {
		if i > 0 && documented[i-1].name == d.name {
			continue // two pipes of one kind of source
		}
		for _, sid := range order(all) {
			for _, l := range all {
				if l.role == d.name && l.sid == sid {
					table.WriteString(l.String())
				}
			}
		}
	}
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
		is = table.Bytes()
		if err := os.WriteFile(rightsDoc, slices.Concat(before, rightsBegin, is, rightsEnd, after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(is, table.Bytes()) {
		t.Errorf("the rights differ from those in %s (review them, then go test -rewrite):\n%s", rightsDoc,
			table.Bytes())
	}
}

// order are the statements' names, what every stack has first.
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
