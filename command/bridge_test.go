// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/seam/queue"
)

func TestBridgeNamesWhatIsWrongBeforeItConsumes(t *testing.T) {
	t.Parallel()
	const rabbit, secure = "--url=amqp://guest:hunter2@127.0.0.1:1/", "--url=amqps://127.0.0.1"
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no address":           {[]string{"--queue", "q"}, rabbitEnv},
		"another protocol":     {[]string{"--queue", "q", "--url", "http://u:hunter2@x/"}, "--url http://u:xxxxx@x/"},
		"no queue":             {[]string{rabbit}, "--queue: name"},
		"its own park":         {[]string{rabbit, "--queue", "q", "--park", "q"}, "--park q"},
		"prefetch":             {[]string{rabbit, "--queue", "q", "--prefetch", "0"}, "--prefetch 0: want 1"},
		"no certificates here": {[]string{rabbit, "--queue", "q", "--ca", "x.pem"}, "--ca: works only with an amqps"},
		"no such file":         {[]string{secure, "--queue", "q", "--ca", "/nowhere.pem"}, "open /nowhere.pem"},
		"no certificates":      {[]string{secure, "--queue", "q", "--ca", "bridge.go"}, "no certificate in PEM"},
		"payload elsewhere":    {[]string{rabbit, "--queue", "q", "--aws", "--payload", "https://x/"}, "want s3://BUCKET"},
		"payload for dev":      {[]string{rabbit, "--queue", "q", "--payload", "s3://b/p"}, "does not read S3"},
		"a sink of dev":        {[]string{rabbit, "--queue", "q", "--to", "search"}, "--to search: add --aws"},
		"lane":                 {[]string{rabbit, "--queue", "q", "--lane", "x"}, "--lane x"},
		"listen":               {[]string{rabbit, "--queue", "q", "--listen", "0.0.0.0:0"}, "--listen 0.0.0.0:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := lull(t, "", append([]string{"bridge", "rabbitmq"}, tt.args...)...)
			a.want(t, name, exitUsage, tt.says)
			if strings.Contains(a.errors, "hunter2") {
				t.Error("the password is printed")
			}
		})
	}
}

func TestTheBridgeFromPostgresNamesWhatIsWrongBeforeItReads(t *testing.T) {
	t.Parallel()
	const at = "--url=postgres://lull@127.0.0.1:1/shop"
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"a password":         {[]string{"--url=postgres://lull:hunter2@db/shop"}, "PGPASSFILE"},
		"not an address":     {[]string{"--url=postgres://lull@db:x/shop"}, "--url: "},
		"a slot":             {[]string{at, "--slot", "My-Slot"}, `--slot "My-Slot": want`},
		"a collection":       {[]string{at, "--collection", "pages=x"}, "want SCHEMA.TABLE=COLLECTION"},
		"no bulk queue":      {[]string{at, "--to", "https://sqs.x/1/q", "--copy", "f"}, "--copy-to"},
		"a bulk queue alone": {[]string{at, "--to", "https://sqs.x/1/q", "--copy-to", "https://sqs.x/1/q"}, "only with --copy"},
		"prefetch":           {[]string{at, "--prefetch", "0"}, "--prefetch 0: want 1"},
		"a sink of dev":      {[]string{at, "--to", "search"}, "--to search: add --aws"},
		"no tables":          {[]string{"setup"}, "setup"},
		"slot of the setup":  {[]string{"setup", "pages", "--slot", "x'y"}, "--slot"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := lull(t, "", append([]string{"bridge", "postgres"}, tt.args...)...)
			a.want(t, name, exitUsage, tt.says)
			if strings.Contains(a.errors+a.out, "hunter2") {
				t.Error("the password is printed")
			}
		})
	}
	lull(t, "", "bridge", "postgres", "setup", "pages").want(t, "setup", exitOK, "")
}

// A message for the queues of several sinks is confirmed to the broker after all these queues have
// it.
func TestABridgedMessageIsSafeOnceEverySinkHasIt(t *testing.T) {
	t.Parallel()
	got := map[string]int{}
	queueOf := func(name string, refuses int) sendFunc {
		return func(_ context.Context, out []queue.Outgoing) []error {
			errs := make([]error, len(out))
			for i := range out {
				if got[name]++; i == refuses {
					errs[i] = errors.New(name + " is full")
				}
			}
			return queue.Answer(errs)
		}
	}
	out := make([]queue.Outgoing, 3)
	answer := toAll([]sendFunc{queueOf("search", 2), queueOf("vectors", 1)})(t.Context(), out)
	for i, want := range []string{"", "vectors is full", "search is full"} {
		if err := queue.ErrorAt(answer, i); fmt.Sprint(err) != cmp.Or(want, "<nil>") {
			t.Errorf("message %d: %v, want %q", i, err, want)
		}
	}
	if got["search"] != 3 || got["vectors"] != 3 {
		t.Errorf("sent %v, want each message to each queue", got)
	}
	if answer := toAll([]sendFunc{queueOf("search", -1)})(t.Context(), out); answer != nil {
		t.Errorf("got %v, want every message to be safe", answer)
	}
}
