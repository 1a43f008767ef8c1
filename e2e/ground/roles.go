// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lullhq/lull/internal/deploy/names"
)

// rights is the name of the only policy of a role of lull.
const rights = "rights"

// iamVersion is the API version of IAM.
const iamVersion = "2010-05-08"

// Right is one action that a statement of a role allows.
type Right struct{ Statement, Action string }

// Rights returns all rights of a function's role.
func (s *Stack) Rights(t testing.TB, f names.Function) []Right {
	t.Helper()
	var all []Right
	for _, statement := range s.statements(t, s.roleOf(t, f)).Statement {
		for _, action := range statement.Action {
			all = append(all, Right{statement.Sid, action})
		}
	}
	return all
}

// policy contains the parts of a role's policy that this package reads or changes.
type policy struct {
	Version   string
	Statement []statement
}

type statement struct {
	Sid, Effect string
	Action      oneOrMore
	Resource    any
	Condition   any `json:",omitempty"`
}

// oneOrMore is a list. If the list has only one member, a policy may contain the member instead of
// the list.
type oneOrMore []string

// UnmarshalJSON reads a list, or the only member of a list.
func (o *oneOrMore) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(o))
}

// TakeAway removes rights from a function's role. The returned function restores the rights. If the
// test does not call it, they are restored at the end of the test. If the role lacks one of the
// rights, the test fails.
func (s *Stack) TakeAway(t testing.TB, f names.Function, rights ...Right) (giveBack func()) {
	t.Helper()
	role := s.roleOf(t, f)
	before, after := s.policy(t, role), s.statements(t, role)
	for _, r := range rights {
		taken := false
		for i, st := range after.Statement {
			if st.Sid == r.Statement && slices.Contains(st.Action, r.Action) {
				after.Statement[i].Action = slices.DeleteFunc(st.Action, func(a string) bool { return a == r.Action })
				taken = true
			}
		}
		if !taken {
			t.Fatalf("the role of %s has no %s in %s to take away", f, r.Action, r.Statement)
		}
	}
	after.Statement = slices.DeleteFunc(after.Statement, func(st statement) bool { return len(st.Action) == 0 })
	text, err := json.Marshal(after)
	Must(t, err)
	s.setPolicy(t, role, string(text))
	giveBack = sync.OnceFunc(func() { s.setPolicy(t, role, before) })
	t.Cleanup(giveBack)
	return giveBack
}

func (s *Stack) statements(t testing.TB, role string) (p policy) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.policy(t, role)), &p); err != nil {
		t.Fatalf("read the policy of %s: %v", role, err)
	}
	return p
}

func (s *Stack) roleOf(t testing.TB, f names.Function) string {
	t.Helper()
	var settings struct{ Role string }
	s.Lambda(t, f, http.MethodGet, "/configuration", nil, &settings)
	return settings.Role[strings.LastIndex(settings.Role, "/")+1:]
}

func (s *Stack) policy(t testing.TB, role string) string {
	t.Helper()
	answer, err := s.Query(t.Context(), "iam", iamVersion, "GetRolePolicy",
		url.Values{"RoleName": {role}, "PolicyName": {rights}})
	Must(t, err)
	document, err := url.QueryUnescape(elementText(answer, "PolicyDocument"))
	if err != nil {
		t.Fatalf("read the policy of %s: %v", role, err)
	}
	return document
}

func (s *Stack) setPolicy(t testing.TB, role, document string) {
	t.Helper()
	form := url.Values{"RoleName": {role}, "PolicyName": {rights}, "PolicyDocument": {document}}
	_, err := s.Query(context.WithoutCancel(t.Context()), "iam", iamVersion, "PutRolePolicy", form)
	Must(t, err)
}

// Both creates a role with the rights of two of the stack's roles for operators, and returns its
// credentials.
func (s *Stack) Both(t testing.TB, one, other string) Who {
	t.Helper()
	all := s.statements(t, s.Names.Role(one, s.Account.Region))
	for _, st := range s.statements(t, s.Names.Role(other, s.Account.Region)).Statement {
		st.Sid += "Too"
		all.Statement = append(all.Statement, st)
	}
	text, err := json.Marshal(all)
	Must(t, err)
	what := one + "-" + other
	role := s.Names.Role(what, s.Account.Region)
	_, err = s.Query(t.Context(), "iam", iamVersion, "CreateRole", url.Values{
		"RoleName": {role}, "AssumeRolePolicyDocument": {`{"Version":"2012-10-17","Statement":[{"Effect":"Allow",` +
			`"Principal":{"AWS":"arn:aws:iam::` + s.AccountID + `:root"},"Action":"sts:AssumeRole"}]}`},
	})
	Must(t, err)
	s.setPolicy(t, role, string(text))
	return s.Role(t, what)
}

// elementText returns the text of the first XML element with this name in an answer of the query
// protocol.
func elementText(answer []byte, name string) string {
	_, rest, _ := strings.Cut(string(answer), "<"+name+">")
	text, _, _ := strings.Cut(rest, "<")
	return text
}
