// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
	"github.com/lullhq/lull/internal/seam/journal"
)

// cloud answers requests of AWS by their action. It fails the test for every other action.
func cloud(t *testing.T, answers map[string]string) *ground.Ground {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && strings.HasPrefix(r.URL.Path, "/") {
			if _, kept := answers["HEAD "+r.URL.Path]; !kept {
				w.WriteHeader(http.StatusNotFound)
			}
			return
		}
		action := r.FormValue("Action")
		if target := r.Header.Get("X-Amz-Target"); target != "" {
			action = target[strings.LastIndex(target, ".")+1:]
		}
		if action == "" {
			action = r.Method + " " + r.URL.Path
		}
		answer, known := answers[action]
		if !known {
			t.Errorf("an unexpected request: %s %s %q", r.Method, r.URL, action)
		}
		if strings.HasPrefix(answer, "404 ") {
			w.WriteHeader(http.StatusNotFound)
			answer = answer[4:]
		}
		if kind, is := strings.CutPrefix(answer, "409 "); is {
			w.Header().Set("X-Amzn-ErrorType", kind)
			w.WriteHeader(http.StatusConflict)
			answer = `{"message":"no"}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "OPENSEARCH_URL": server.URL, "LULL_E2E_WORK": t.TempDir(),
		"LULL_E2E_DIST": "dist", "LULL_E2E_ROOT": ".",
	} {
		t.Setenv(name, value)
	}
	g, err := ground.Open()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAnAccountOfProductionIsRefused(t *testing.T) {
	t.Parallel()
	answer := "<ListAccountAliasesResponse><ListAccountAliasesResult><AccountAliases><member>%s</member>" +
		"</AccountAliases></ListAccountAliasesResult></ListAccountAliasesResponse>"
	for alias, refused := range map[string]bool{
		"acme-prod": true, "production": true, "acme-PRD-1": true, "live": true, "acme-live-eu": true,
		"acme-staging": false, "sandbox": false, "product-search-dev": false, "delivery": false, "olive-dev": false,
	} {
		if err := refuseProduction(fmt.Appendf(nil, answer, alias)); (err != nil) != refused {
			t.Errorf("%s: got %v, want refused: %t", alias, err, refused)
		}
	}
	if err := refuseProduction([]byte("no XML")); err == nil {
		t.Error("an answer that cannot be read was accepted")
	}
}

func TestTheCredentialsMustBeThoseOfTheNamedAccount(t *testing.T) {
	g := cloud(t, map[string]string{"GetCallerIdentity": "<GetCallerIdentityResponse><GetCallerIdentityResult>" +
		"<Account>999988887777</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"})
	r := &runner{g: g, out: io.Discard}
	if err := r.check(t.Context()); err == nil || !strings.Contains(err.Error(), "belong to account 999988887777") {
		t.Errorf("got %v", err)
	}
}

func TestOptionsNameTheFix(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                     "ACCOUNT=111122223333",
		"-account 12":                          "by its 12 digits",
		"-on azure":                            "aws, localstack or ministack",
		"-on localstack -stack prod":           "begin with lull-",
		"-on localstack -stack lull-a -for 1s": "20s to 2h",
		"-on localstack -load 0":               "1 to 100",
		"-on localstack now":                   `"now" is not an option`,
		"-on localstack":                       "",
		"-account 111122223333":                "",
	} {
		_, err := read(strings.Fields(args), io.Discard)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", args, err, want)
		}
	}
}

func TestOnlyAYesIsAgreement(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "": false, "no\n": false, "yep\n": false} {
		if got := agreed(strings.NewReader(answer), io.Discard); got != want {
			t.Errorf("%q: got %t, want %t", answer, got, want)
		}
	}
}

// A run that failed continues with the step that failed, and does no step again.
func TestARunContinuesWhereItStopped(t *testing.T) {
	t.Parallel()
	var did []string
	fails := true
	file := filepath.Join(t.TempDir(), "state.json")
	begin := func() *runner {
		r := &runner{g: &ground.Ground{Root: "."}, out: io.Discard, file: file, options: options{backend: onLocalStack}}
		for _, name := range []string{"one", "two", "three"} {
			r.plan = append(r.plan, step{name, func(context.Context) (string, error) {
				did = append(did, name)
				if name == "two" && fails {
					return "", errors.New("no")
				}
				return "", nil
			}})
		}
		if err := r.load(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	if err := begin().perform(t.Context()); err == nil || !strings.Contains(err.Error(), "two: no") {
		t.Fatalf("got %v", err)
	}
	fails = false
	if err := begin().perform(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(did, " "); got != "one two two three" {
		t.Errorf("the steps that ran: %s", got)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of a finished run: %v", err)
	}
}

// What CloudFormation leaves is named. Whatever is gone, or was never data, is not.
func TestWhatIsLeftIsNamed(t *testing.T) {
	g := cloud(t, map[string]string{
		"HEAD /kept":        "",
		"DescribeTable":     `{"Table":{"TableName":"lull-shards"}}`,
		"GetRole":           "404 <ErrorResponse><Error><Code>NoSuchEntity</Code></Error></ErrorResponse>",
		"DescribeLogGroups": `{"logGroups":[]}`,
	})
	r := &runner{g: g, out: io.Discard, options: options{backend: onMinistack}}
	left, err := r.left(t.Context(), []resource{
		{Type: "AWS::S3::Bucket", Physical: "kept"},
		{Type: "AWS::S3::Bucket", Physical: "gone"},
		{Type: "AWS::DynamoDB::GlobalTable", Physical: "lull-shards"},
		{Type: "AWS::IAM::Role", Physical: "lull-role"},
		{Type: "AWS::Logs::LogGroup", Physical: "/aws/lambda/lull"},
		{Type: "AWS::Events::Rule", Physical: "lull-rule"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(left, "\n"); len(left) != 2 || !strings.Contains(got, "Bucket kept") ||
		!strings.Contains(got, "lull-shards") {
		t.Errorf("left:\n%s", got)
	}
}

func TestTheEstimateReadsTheCeiling(t *testing.T) {
	t.Parallel()
	if got, err := ceiling([]byte(`{"floor":{"total":1},"ceiling":{"total":73}}`)); got != 73 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := ceiling([]byte(`{"floor":{"total":1}}`)); err == nil {
		t.Error("an answer without a total was accepted")
	}
}

func TestThePageSaysWhereItRan(t *testing.T) {
	t.Parallel()
	s := state{
		Region: "eu-west-1", Begun: time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC), Left: []string{"the stack CDKToolkit"},
		Steps: []done{{"deploy", 7, ""}, {"tests", 0, "none was asked for"}},
		Load:  &figures{Documents: 5, Killed: map[string]int{"index": 2}, Deploys: 2},
	}
	var all ground.Decisions
	for i := range 100 {
		all = append(all, ground.Decision{Step: journal.Committed, Doc: "c#1", AgeMS: int64(i+1) * 100})
	}
	s.Load.measure(append(all, ground.Decision{Step: journal.Committed, Doc: "other#1", AgeMS: 1e9}), "c")
	for backend, want := range map[string]string{
		onAWS: "on **AWS**, in the region eu-west-1", onLocalStack: "did not run on AWS", onMinistack: "enforces IAM",
	} {
		text := s.page(options{backend: backend, stack: "lull-acceptance"}, "abc")
		for _, part := range []string{want, "commit abc", "| deploy | ok | 7 |", "left out: none was", "5.1 s, 10.0 s, 10.0 s", "CDKToolkit"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %q in\n%s", backend, part, text)
			}
		}
	}
}
