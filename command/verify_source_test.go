// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"
	"strings"
	"testing"
)

// A collection is compared with its source itself, and repaired from it. No export is needed.
func TestVerifyAsksTheSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	object := func(id, text string) { save(t, filepath.Join(dir, "cms-content", id+".json"), text) }
	object("a", `{"title":"first"}`)
	object("b", `{"title":"second"}`)
	source := "sources: {cms: {kind: native, fetch: {url: 's3://cms-content/{id}.json'}}}"
	settings := write(t, "sinks: {search: {kind: bleve}}", source)
	s := settled(t, "--config", settings, "--events", write(t, touch("a"), touch("b")), "--buckets", dir, "--speed", "10")
	check := []string{"index", "check", "content", "--from-source", "--rate", "100", "--patience", "4s"}
	s.ask(check...).want(t, "no drift", exitOK, "no drift", "2 requests to the source")
	object("a", `{"title":"changed"}`) // the event of this change is lost
	a := s.ask(check...)
	a.want(t, "drift", exitWrong, "1 documents of content differ")
	if !strings.Contains(a.out, "lull index repair content --from-source`") || !strings.Contains(a.out, "changed      content#a") {
		t.Errorf("the check said %q", a.out)
	}
	repair := append([]string{"index", "repair"}, check[2:]...)
	s.ask(repair...).want(t, "repair", exitOK, "content#a", "resent", "repaired, 1 resent")
	s.ask("get", "content#a").want(t, "get", exitOK, `{"title":"changed"}`)
	s.ask("index", "repair", "content", "--detach").want(t, "no schedule", exitUsage, "on no schedule")
	s.ask("index", "check", "content", "--from-source", "--source", "x").
		want(t, "two inputs", exitUsage, "--from-source and --source")
}

func touch(id string) string { return `{"type":"doc.touched","subject":"` + id + `","sequence":"1"}` }

// A schedule is told to begin now. Without fetch there is neither a schedule nor a comparison.
func TestVerifyRefusesACollectionThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	source := "sources: {cms: {kind: native, fetch: {url: 's3://cms-content/{id}.json'}}}"
	settings := write(t, source, "collections: {content: {verify: {every: 24h}}}")
	s := start(t, nil, "--config", settings, "--events", write(t, touch("a")), "--buckets", t.TempDir(), "--speed", "10")
	s.ask("index", "repair", "content", "--detach").want(t, "detach", exitOK, "heal-content")
	s = settled(t, "--events", write(t, put("a", "1", "{}")), "--speed", "10")
	s.ask("index", "check", "content", "--from-source").
		want(t, "no fetch", exitUsage, "it has no source with the setting fetch: compare with an export")
	s.ask("index", "repair", "content", "--detach").want(t, "no schedule", exitUsage, "setting fetch")
}
