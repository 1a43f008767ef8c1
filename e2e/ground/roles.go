package ground

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullhq/lull/internal/names"
	"github.com/lullhq/lull/internal/shard"
)

// rights is the name of the one policy that a role of lull has.
const rights = "rights"

// iamVersion is the version of IAM's protocol.
const iamVersion = "2010-05-08"

// TakeAway takes an action away from a function's role. The function that it returns gives it back;
// otherwise the end of the test does. A role without that action fails the test.
func (s *Stack) TakeAway(t testing.TB, f names.Function, action string) (giveBack func()) {
	t.Helper()
	role := s.roleOf(t, f)
	before := s.policy(t, role)
	var document struct {
		Version   string
		Statement []map[string]any
	}
	if err := json.Unmarshal([]byte(before), &document); err != nil {
		t.Fatalf("read the policy of %s: %v", role, err)
	}
	taken := false
	document.Statement = slices.DeleteFunc(document.Statement, func(statement map[string]any) bool {
		actions, several := statement["Action"].([]any)
		if !several {
			actions = []any{statement["Action"]}
		}
		kept := slices.DeleteFunc(slices.Clone(actions), func(a any) bool { return a == action })
		taken = taken || len(kept) < len(actions)
		statement["Action"] = kept
		return len(kept) == 0
	})
	if !taken {
		t.Fatalf("the role of %s has no %s to take away", f, action)
	}
	after, err := json.Marshal(document)
	must(t, err)
	s.setPolicy(t, role, string(after))
	giveBack = sync.OnceFunc(func() { s.setPolicy(t, role, before) })
	t.Cleanup(giveBack)
	return giveBack
}

func (s *Stack) roleOf(t testing.TB, f names.Function) string {
	t.Helper()
	var settings struct{ Role string }
	path := functionsPath + s.Names.Function(Sink, f) + "/configuration"
	must(t, s.rest(t.Context(), http.MethodGet, path, nil, &settings))
	return settings.Role[strings.LastIndex(settings.Role, "/")+1:]
}

func (s *Stack) policy(t testing.TB, role string) string {
	t.Helper()
	answer, err := s.query(t.Context(), "iam", iamVersion, "GetRolePolicy",
		url.Values{"RoleName": {role}, "PolicyName": {rights}})
	must(t, err)
	document, err := url.QueryUnescape(element(answer, "PolicyDocument"))
	if err != nil {
		t.Fatalf("read the policy of %s: %v", role, err)
	}
	return document
}

func (s *Stack) setPolicy(t testing.TB, role, document string) {
	t.Helper()
	form := url.Values{"RoleName": {role}, "PolicyName": {rights}, "PolicyDocument": {document}}
	_, err := s.query(context.WithoutCancel(t.Context()), "iam", iamVersion, "PutRolePolicy", form)
	must(t, err)
}

// As is the account for a role of it, as somebody who may assume the role.
func (g *Ground) As(ctx context.Context, role string) (aws.Config, error) {
	answer, err := g.query(ctx, "sts", "2011-06-15", "AssumeRole", url.Values{
		"RoleArn": {"arn:aws:iam::" + AccountID + ":role/" + role}, "RoleSessionName": {"e2e"},
	})
	if err != nil {
		return aws.Config{}, err
	}
	return account(aws.ToString(g.Account.BaseEndpoint), element(answer, "AccessKeyId"),
		element(answer, "SecretAccessKey"), element(answer, "SessionToken")), nil
}

// element is the text of the first element of that name in an answer of the query protocol.
func element(answer []byte, name string) string {
	_, rest, _ := strings.Cut(string(answer), "<"+name+">")
	text, _, _ := strings.Cut(rest, "<")
	return text
}

// Prune runs prune now, whenever it ran last, and returns the error that it ends with, nil for
// none. The rule must be off.
func (s *Stack) Prune(t testing.TB) error {
	t.Helper()
	client := sdk.NewFromConfig(s.Account)
	for _, name := range []string{"prune-" + Sink, "rows"} {
		_, err := client.DeleteItem(t.Context(), &sdk.DeleteItemInput{
			TableName: aws.String(s.Names.Table()), Key: item(string(shard.RunRow(name))),
		})
		must(t, err)
	}
	var answer struct{ ErrorType, ErrorMessage string }
	path := functionsPath + s.Names.Function(Sink, names.Prune) + "/invocations?Qualifier=" + names.Alias
	must(t, s.rest(t.Context(), http.MethodPost, path, map[string]any{}, &answer))
	if answer.ErrorMessage != "" {
		return fmt.Errorf("prune: %s: %s", answer.ErrorType, answer.ErrorMessage)
	}
	return nil
}

// LettersReturnAfter sets how long a dead letter that dlq could not park stays invisible. As
// deployed it is three minutes.
func (s *Stack) LettersReturnAfter(t testing.TB, d time.Duration) {
	t.Helper()
	_, err := s.SQS.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &s.Dead, Attributes: map[string]string{"VisibilityTimeout": fmt.Sprint(int(d / time.Second))},
	})
	must(t, err)
}
