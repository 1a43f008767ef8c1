// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"

	"github.com/lullhq/lull/e2e/ground"
)

// A command with the credentials of a role must not run with those of the account's owner.
func TestTheCredentialsOfARoleHaveTheNamesOfAWS(t *testing.T) {
	g := cloud(t, map[string]string{"AssumeRole": "<A><AccessKeyId>id</AccessKeyId>" +
		"<SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken></A>"})
	c := config.Default()
	s := &ground.Stack{Ground: g, Names: names.Of(&c)}
	want := ground.Who{"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "AWS_SESSION_TOKEN=token"}
	if got := s.Role(t, "reader"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

const domainPath = "GET /2021-01-01/opensearch/domain/lull-a"

// A domain of the stack's name that another program made would be written to and deleted.
func TestADomainOfAnotherIsRefused(t *testing.T) {
	for answer, refused := range map[string]bool{
		"409 ResourceNotFoundException": false, `{"DomainStatus":{"Endpoint":"search.example.org"}}`: true, "409 LimitExceeded": true,
	} {
		g := cloud(t, map[string]string{"DescribeStacks": "<A/>", domainPath: answer})
		r := &runner{g: g, options: options{backend: onAWS, stack: "lull-a"}}
		if err := r.unused(t.Context()); (err != nil) != refused {
			t.Errorf("%s: got %v, want refused: %t", answer, err, refused)
		}
	}
}

// -clean without a state removes only a domain that has the tag of acceptance.
func TestCleanRemovesOnlyADomainOfAcceptance(t *testing.T) {
	for tags, own := range map[string]bool{
		`{"TagList":[{"Key":"lull:made-by","Value":"acceptance"}]}`: true, `{"TagList":[{"Key":"owner"}]}`: false,
	} {
		g := cloud(t, map[string]string{domainPath: `{"DomainStatus":{}}`, "GET /2021-01-01/tags/": tags})
		r := &runner{g: g, options: options{backend: onAWS, stack: "lull-a"}}
		if err := r.foundDomain(t.Context()); err != nil || r.state.Domain != own {
			t.Errorf("%s: got %t, %v, want %t", tags, r.state.Domain, err, own)
		}
	}
}

// -clean without a state removes only a stack that has the tag of acceptance. Another stack of that
// name may be a colleague's.
func TestCleanRemovesOnlyAStackOfAcceptance(t *testing.T) {
	const described = "<A><DescribeStacksResult><Stacks><member><StackStatus>CREATE_COMPLETE</StackStatus><Tags>%s</Tags>" +
		"</member></Stacks></DescribeStacksResult></A>"
	for answer, refused := range map[string]bool{
		fmt.Sprintf(described, "<member><Key>lull:made-by</Key><Value>acceptance</Value></member>"): false,
		fmt.Sprintf(described, "<member><Key>owner</Key><Value>a colleague</Value></member>"):       true,
		fmt.Sprintf(described, ""): true,
		"<A/>":                     false, // there is no stack
	} {
		g := cloud(t, map[string]string{
			"GetCallerIdentity": "<A><GetCallerIdentityResult><Account>" + ground.EmulatorAccount +
				"</Account></GetCallerIdentityResult></A>",
			"DescribeStacks": answer,
		})
		r := &runner{
			g: g, out: io.Discard, file: filepath.Join(t.TempDir(), "state.json"),
			options: options{backend: onMinistack, stack: "lull-a", clean: true},
		}
		if err := r.begin(t.Context()); (err != nil) != refused {
			t.Errorf("%s: got %v, want refused: %t", answer, err, refused)
		}
	}
}

// S3 needs the region of a bucket, except for us-east-1.
func TestABucketIsMadeInItsRegion(t *testing.T) {
	for region, want := range map[string]bool{"us-east-1": false, "eu-west-1": true} {
		var body []byte
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
		}))
		g := cloud(t, nil)
		g.Account.Region, g.Account.BaseEndpoint = region, &server.URL
		if err := g.Bucket(t.Context(), "lull-a-exports"); err != nil {
			t.Error(err)
		}
		server.Close()
		if got := bytes.Contains(body, []byte("<LocationConstraint>"+region)); got != want {
			t.Errorf("%s: the body %q, want a location: %t", region, body, want)
		}
	}
}

// A stack may have more resources than one answer.
func TestEveryPageOfResourcesIsRead(t *testing.T) {
	pages := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages++
		next := "<NextToken>two</NextToken>"
		if r.FormValue("NextToken") == "two" {
			next = ""
		}
		_, _ = fmt.Fprintf(w, "<A><ListStackResourcesResult><StackResourceSummaries><member><PhysicalResourceId>%d"+
			"</PhysicalResourceId></member></StackResourceSummaries>%s</ListStackResourcesResult></A>", pages, next)
	}))
	defer server.Close()
	g := cloud(t, nil)
	g.Account.BaseEndpoint = &server.URL
	all, err := (&runner{g: g, options: options{stack: "lull-a"}}).resources(t.Context())
	if err != nil || len(all) != 2 || all[1].Physical != "2" {
		t.Errorf("got %+v, %v", all, err)
	}
}

// Variables for another stack do not change this one, and an emulator's run never opens an account.
func TestTheEnvironmentOfAnotherStackIsRemoved(t *testing.T) {
	for backend, account := range map[string]string{onAWS: "111122223333", onLocalStack: ""} {
		t.Setenv("LULL_STREAMS", "arn:aws:kinesis:eu-west-1:111122223333:stream/orders")
		t.Setenv("LULL_E2E_WORK", "work")
		t.Setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "")
		t.Setenv(ground.EnvAccount, "999988887777")
		t.Setenv(ground.EnvStack, "")
		o := options{backend: backend, account: account, stack: "lull-a"}
		if err := o.environment(); err != nil {
			t.Fatal(err)
		}
		_, streams := os.LookupEnv("LULL_STREAMS")
		if os.Getenv(ground.EnvAccount) != account || os.Getenv("LULL_E2E_WORK") != "work" || streams != (backend != onAWS) {
			t.Errorf("%s: %q", backend, os.Environ())
		}
	}
}

func TestTheHintHasTheOptionsOfTheRun(t *testing.T) {
	t.Parallel()
	o := options{account: "111122223333", stack: "lull-b", search: "https://s"}
	if got := o.command("-clean"); got != "make acceptance ACCOUNT=111122223333 ARGS='-stack lull-b -search https://s -clean'" {
		t.Error(got)
	}
	o.stack, o.search = defaultStack, ""
	if got := o.command(""); got != "make acceptance ACCOUNT=111122223333" {
		t.Error(got)
	}
}

// A program that was killed while a function was changed finds in its file how the function was.
func TestTheNextRunRestoresAFunction(t *testing.T) {
	c := config.Default()
	n := names.Of(&c)
	path := "/2015-03-31/functions/" + n.Function(ground.Sink, names.Index)
	g := cloud(t, map[string]string{
		"GET " + path + "/aliases/" + names.Alias: `{"FunctionVersion":"3"}`,
		"PUT " + path + "/aliases/" + names.Alias: `{}`,
		"GET " + path + "/configuration":          `{"Timeout":60,"MemorySize":512,"LastUpdateStatus":"Successful"}`,
		"PUT " + path + "/configuration":          `{}`,
		"POST " + path + "/versions":              `{"Version":"4"}`,
	})
	file := filepath.Join(t.TempDir(), "state.json")
	stack := &ground.Stack{Ground: g, Names: n}
	was, err := stack.Former(t.Context(), names.Index)
	if err != nil || was.Version != "3" || was.Configuration.Timeout != 60 {
		t.Fatalf("got %+v, %v", was, err)
	}
	if err := (&runner{file: file, state: state{Killing: &was}}).save(); err != nil {
		t.Fatal(err)
	}
	next := &runner{g: g, s: stack, file: file}
	if err := next.load(); err != nil || next.state.Killing == nil || *next.state.Killing != was {
		t.Fatalf("got %+v, %v", next.state.Killing, err)
	}
	if err := next.restore(t.Context()); err != nil || next.state.Killing != nil {
		t.Errorf("got %+v, %v", next.state.Killing, err)
	}
	if _, err := next.kill(t.Context(), names.Index, 0); err != nil || next.state.Killing != nil {
		t.Errorf("got %+v, %v", next.state.Killing, err)
	}
}
