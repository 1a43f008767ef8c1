// SPDX-License-Identifier: Apache-2.0

package work

import (
	"bytes"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/sink"
	_ "github.com/lullhq/lull/sink/builtin"
	"github.com/lullhq/lull/source"
	_ "github.com/lullhq/lull/source/builtin"
)

func TestJobIsWiredFromItsNames(t *testing.T) {
	t.Parallel()
	needed := []string{lambda.EnvTable, lambda.EnvBucket, lambda.EnvLiveQueues, lambda.EnvBulkQueues}
	vars := lambdatest.Environment()
	maps.DeleteFunc(vars, func(name, _ string) bool {
		return strings.HasPrefix(name, "LULL_") && !slices.Contains(needed, name)
	})
	s := lambdatest.Setup("job", vars, io.Discard)
	h, err := wireJob(s)
	works, ok := h.(*lambda.Works)
	if err != nil || s.Missing() != nil || !ok || works.Limit != lambda.JobTimeout ||
		works.Do[config.WorkCanary] == nil || works.Do[config.WorkVerify] == nil {
		t.Fatalf("got %+v, %v, missing %v", h, err, s.Missing())
	}
	for _, name := range append(needed, "AWS_ACCESS_KEY_ID") {
		without := maps.Clone(vars)
		delete(without, name)
		s := lambdatest.Setup("job", without, io.Discard)
		_, err := wireJob(s)
		if err == nil {
			err = s.Missing()
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: got %v", name, err)
		}
	}
}

// The addresses of the queues belong to the sinks by their order.
func TestJobRefusesAddressesOfOtherSettings(t *testing.T) {
	t.Parallel()
	s := lambdatest.Setup("job", lambdatest.Environment(), io.Discard)
	s.Config.Sinks["other"] = config.Sink{Kind: "webhook", URL: "https://other.example.org"}
	if _, err := wireJob(s); err == nil || !strings.Contains(err.Error(), "1 addresses for 2 sinks") {
		t.Errorf("got %v", err)
	}
}

// Without a table, the canary fails and says why. It publishes nothing.
func TestACanaryWithoutATableFails(t *testing.T) {
	t.Parallel()
	account := lambdatest.NewAccount(t)
	account.Lose(lambdatest.Table)
	var log bytes.Buffer
	s := lambdatest.Setup("job", account.Environment(), &log)
	s.Config.Canary.Every = 15 * time.Minute
	h, err := wireJob(s)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := h.Invoke(t.Context(), []byte(`{"work":"canary"}`))
	if err != nil || string(answer) != "{}" {
		t.Errorf("got %s, %v", answer, err)
	}
	for _, says := range []string{
		`"msg":"canary failed"`, `"sink":"search"`, "table lull-shards or its index waiting does not exist",
		`"CanaryFailed":1`,
	} {
		if !strings.Contains(log.String(), says) {
			t.Errorf("want %s in the log:\n%s", says, &log)
		}
	}
	if n := account.Calls("SendMessage"); n != 0 {
		t.Errorf("%d messages were published", n)
	}
}

// A verification without a table fails, and the invocation with it. The alarm job-idle counts that.
func TestAVerificationWithoutATableFails(t *testing.T) {
	t.Parallel()
	account := lambdatest.NewAccount(t)
	account.Lose(lambdatest.Table)
	var log bytes.Buffer
	s := lambdatest.Setup("job", account.Environment(), &log)
	s.Config.Sources = map[string]config.Source{"cms": {
		Kind: "native", Class: config.ClassInt, Fetch: &source.Fetch{URL: "https://cms.example.org/{id}", Version: "/version"},
	}}
	s.Config.DefaultSource = ""
	s.Config.Collections = map[string]config.Collection{"content": {Verify: &config.Verify{Every: time.Hour}}}
	s.Config.Complete()
	h, err := wireJob(s)
	if err != nil {
		t.Fatal(err)
	}
	const says = "table lull-shards or its index waiting does not exist"
	if answer, err := h.Invoke(t.Context(), []byte(`{"work":"verify"}`)); err == nil || !strings.Contains(err.Error(), says) ||
		!strings.Contains(log.String(), says) {
		t.Errorf("got %s, %v:\n%s", answer, err, &log)
	}
}

// The program links each kind that can be deployed, and no other.
func TestTheProgramLinksEveryKindThatCanBeDeployed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../job/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sink.Kinds() {
		kind, _ := sink.Lookup(name)
		path := name
		if !kind.Deployable() {
			path += "sink"
		}
		if links := strings.Contains(string(text), `"github.com/lullhq/lull/sink/`+path+`"`); links != kind.Deployable() {
			t.Errorf("functions/job/main.go links the kind %s: %t, want %t", name, links, kind.Deployable())
		}
	}
}
