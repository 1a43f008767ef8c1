// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
)

func TestResetLetsADocumentGoOn(t *testing.T) {
	t.Parallel()
	settings := write(t, "sources: {native: {kind: native, maxVersion: '1000'}}")
	nines := strings.Repeat("9", 40)
	open := start(t, nil, "--events", write(t, put("a", "4", `{"t":4}`), del("a", nines)), "--speed", "100")
	open.out.await(t, "everything has settled")
	open.ask("wait", "content#a", "--version", nines).want(t, "the absurd delete", exitOK)
	open.publish(put("a", "5", `{"t":5}`))
	for get[struct{ Report struct{ Stale int } }](t, open.url+"/status").Report.Stale == 0 {
		continue // if the event were judged after the reset, it would be accepted
	}
	open.ask("get", "content#a").want(t, "a later version", exitMissing, "not found",
		"deleted by version "+nines)
	explained := func(says string) {
		t.Helper()
		if a := open.ask("explain", "content#a"); a.code != exitWrong || !strings.Contains(a.out, says) {
			t.Errorf("explain: %+v, want %q", a, says)
		}
	}
	explained("far ahead")
	for name, tt := range map[string]struct {
		args []string
		code exitCode
		says string
	}{
		"without a version":    {[]string{"content#a"}, exitUsage, "--to"},
		"without a key":        {[]string{"--to", "5"}, exitUsage, "KEY is missing"},
		"to a text":            {[]string{"content#a", "--to", "five"}, exitUsage, `"five"`},
		"to an epoch of none":  {[]string{"content#a", "--to", "5", "--epoch", "-1"}, exitUsage, "--epoch"},
		"to a later epoch":     {[]string{"content#a", "--to", "5", "--epoch", "1"}, exitUsage, "not below"},
		"of what is not there": {[]string{"content#z", "--to", "5"}, exitMissing, "nothing is committed"},
	} {
		open.ask(append([]string{"reset", "--yes"}, tt.args...)...).want(t, name, tt.code, tt.says)
	}
	open.ask("reset", "content#a", "--to", "5").want(t, "without a terminal", exitUsage, "a reset cannot be undone", "--yes")
	r := parsed[operate.Resetted](t, open.ask("reset", "content#a", "--to", "5", "--yes", "-o", "json"))
	if r.Key != "content#a" || r.Version != nines || r.To != "5" {
		t.Errorf("reset: %+v", r)
	}
	explained("It was reset: versions from 5 on")
	open.publish(put("a", "4", `{"t":4}`), put("a", "5", `{"t":5}`))
	open.ask("wait", "content#a", "--version", "5").want(t, "the version again", exitOK, "It is fresh: version 5")
	open.ask("get", "content#a").want(t, "the document", exitOK, `{"t":5}`)
	open.ask("reset", "content#a", "--to", "1", "--yes").want(t, "reset a good version", exitOK, "version 5 was committed")
	bound := lull(t, del("a", nines), "dev", "--events", "-", "--exit-when-idle", "--config", settings, "--speed", "100")
	if bound.code != exitRefused || !strings.Contains(bound.out, "version_invalid") {
		t.Errorf("with maxVersion: %+v, want a dead letter", bound)
	}
}

func TestResetOfADeployedStackIsAudited(t *testing.T) {
	t.Parallel()
	v, err := shard.ParseVersion(shard.ClassInt, strings.Repeat("9", 40))
	if err != nil {
		t.Fatal(err)
	}
	k, err := shard.NewOrderKey(shard.Parts{Version: v, Digest: shard.Digest{1}})
	if err != nil {
		t.Fatal(err)
	}
	row := map[string]any{
		"doc": map[string]string{"S": "content#a"}, "version_class": map[string]string{"S": "i"},
		"committed": map[string][]byte{"B": []byte(k)}, "committed_op": map[string]string{"S": "delete"},
		"last_write": map[string]string{"N": "1"},
	}
	a := newAccount(t, map[string]awstest.Reply{
		"BatchGetItem": {Body: map[string]any{"Responses": map[string]any{"shop-shards": []any{row}}}},
	})
	got := a.ask(t, "reset", "content#a", "--to", "5", "--yes")
	got.want(t, "reset", exitOK, "versions from 5 on are accepted again")
	for _, part := range []string{
		`"msg":"reset"`, `"audit":true`, `"key":"content#a"`, k.String(), "by ", "versions from 5 on",
	} {
		if !strings.Contains(got.errors, part) {
			t.Errorf("audited as %q, want %s", got.errors, part)
		}
	}
	if n := len(a.calls); n == 0 || a.calls[n-1] != "UpdateItem" {
		t.Errorf("calls %v, want UpdateItem last", a.calls)
	}
}
