// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/lambda/lambdatest"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/sink"
	_ "github.com/lullhq/lull/sink/builtin"
)

func TestTheSinkIsWhatTheSettingsSay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*config.Sink)
		says   string
	}{
		"no authentication": {func(*config.Sink) {}, ""},
		"a secret": {func(s *config.Sink) {
			s.Auth = config.Auth{
				Kind:      config.AuthBasic,
				SecretARN: "arn:aws:secretsmanager:eu-west-1:123456789012:secret:search-AbCdEf",
			}
		}, ""},
		"an empty environment": {func(s *config.Sink) {
			s.Auth = config.Auth{Kind: config.AuthBasic, UserEnv: "SEARCH_USER", PasswordEnv: "SEARCH_PASSWORD"}
		}, "SEARCH_PASSWORD"},
		"signed": {
			func(s *config.Sink) { s.Auth = config.Auth{Kind: config.AuthSigV4, Service: "es"} },
			"",
		},
		"a kind that is not linked": {func(s *config.Sink) { s.Kind = "ndjson" }, "import the package of the kind"},
		"no address":                {func(s *config.Sink) { s.URL = "search" }, "sinks.search"},
	}
	for name, tt := range tests {
		s := lambdatest.Setup("index", lambdatest.Environment(), io.Discard)
		sink := s.Config.Sinks["search"]
		tt.change(&sink)
		s.Config.Sinks["search"] = sink
		_, err := wireIndex(s)
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %q", name, err, tt.says)
		}
	}
}

// main is the text of the program of index for a kind of sink.
const main = `// SPDX-License-Identifier: Apache-2.0

// %s is the Lambda function behind the state machine of a sink of this kind: see
// functions.Index. It links no other kind.
package main

import (
	"github.com/lullhq/lull/functions"
	_ "github.com/lullhq/lull/source/builtin"

	_ "github.com/lullhq/lull/sink/%s"
)

func main() { functions.Index() }
`

// A function links only the kind of its own sink, because some kinds have large clients.
func TestEachKindHasAProgramOfItsOwn(t *testing.T) {
	t.Parallel()
	folders, err := os.ReadDir("index")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, folder := range folders {
		got = append(got, folder.Name())
	}
	for _, name := range sink.Kinds() {
		if kind, _ := sink.Lookup(name); !kind.Deployable() {
			continue
		}
		want = append(want, name)
		text := fmt.Sprintf(main, strings.ToUpper(name[:1])+name[1:], name)
		if program, err := os.ReadFile("index/" + name + "/main.go"); err != nil || string(program) != text {
			t.Errorf("write functions/index/%s/main.go:\n%s", name, text)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("functions/index has %v, and the kinds that can be deployed are %v", got, want)
	}
}

// Receive, prune and dlq link no kind of sink, and the index function links one. All of them must
// compute the same lease.
func TestAllFunctionsOfASinkReckonWithOneLease(t *testing.T) {
	t.Parallel()
	no := false
	for _, name := range sink.Kinds() {
		kind, _ := sink.Lookup(name)
		if !kind.Deployable() {
			continue
		}
		for _, versions := range []*bool{nil, &no} {
			c := config.Default()
			c.Sinks = map[string]config.Sink{
				"search": {Kind: name, URL: kind.Example(), Index: "news", Versions: versions},
			}
			c.Complete()
			text, err := json.Marshal(c.Resolve())
			if err != nil {
				t.Fatal(err)
			}
			unlinked := strings.ReplaceAll(string(text), `"kind":"`+name+`"`, `"kind":"elsewhere"`)
			for _, text := range []string{string(text), unlinked} {
				got, err := config.ParseDeployed([]byte(text))
				if err != nil || got.Lease("search") != c.Lease("search") ||
					got.Sinks["search"].Capabilities().Versions != c.Sinks["search"].Capabilities().Versions {
					t.Errorf(
						"%s: got a lease of %s and versions %t from %s, want %s and %t: %v",
						name,
						got.Lease("search"),
						got.Sinks["search"].Capabilities().Versions,
						text,
						c.Lease("search"),
						c.Sinks["search"].Capabilities().Versions,
						err,
					)
				}
			}
		}
	}
}
