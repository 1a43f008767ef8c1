// SPDX-License-Identifier: Apache-2.0

//go:build e2esinks

package sinks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lullhq/lull/e2e/ground"
)

// govukPage is a message of GOV.UK's publishing system, with the fields that lull reads.
type govukPage struct {
	ID      string `json:"content_id"`
	Version int    `json:"payload_version"`
	Type    string `json:"document_type"`
	Schema  string `json:"schema_name"`
	Locale  string `json:"locale"`
	Path    string `json:"base_path"`
	Title   string `json:"title"`
	Updated string `json:"public_updated_at"`
}

// timedMessage is a message in the file of `lull dev --events`, with the time at which it is sent.
type timedMessage struct {
	After int       `json:"after_ms"`
	Body  govukPage `json:"body"`
}

// randomBursts returns five versions of each of 200 pages, within two seconds and in random order.
// Some versions are sent twice, and some of these copies are sent much later. Every ninth page is
// withdrawn at the end.
func randomBursts(seed uint64) (lines []timedMessage, want map[string]string) {
	random := rand.New(rand.NewPCG(seed, 1))
	want = map[string]string{}
	for n := range 200 {
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
		start, newest := random.IntN(20_000), 0
		for range 5 {
			version := 1_000 + random.IntN(100_000)
			newest = max(newest, version)
			p := govukPage{
				ID: id, Version: version, Type: "answer", Schema: "answer", Locale: "en", Path: "/page-" + fmt.Sprint(n),
				Title: fmt.Sprintf("Page %d in version %d", n, version), Updated: "2026-11-20T16:00:00Z",
			}
			for range 1 + random.IntN(2) {
				lines = append(lines, timedMessage{start + random.IntN(2_000) + 20_000*random.IntN(2), p})
			}
		}
		want[id] = fmt.Sprint(newest)
		if n%9 == 0 {
			lines = append(lines, timedMessage{start + random.IntN(2_000), govukPage{
				ID: id, Version: newest + 1, Type: "gone", Schema: "gone", Locale: "en", Path: "/page-" + fmt.Sprint(n),
			}})
			delete(want, id)
		}
	}
	slices.SortStableFunc(lines, func(a, b timedMessage) int { return a.After - b.After })
	return lines, want
}

// After bursts in random order, the server has the version of each document that sorting the
// versions gives.
func TestLullDevEndsEqualToSorting(t *testing.T) {
	sink, ok := os.LookupEnv("LULL_E2E_SINK")
	if !ok {
		t.Fatal("LULL_E2E_SINK says which sink, KIND:URL: run e2e/run.sh sinks")
	}
	lines, want := randomBursts(7)
	var events bytes.Buffer
	for _, l := range lines {
		ground.Must(t, json.NewEncoder(&events).Encode(l))
	}
	dump := filepath.Join(t.TempDir(), "dump")
	c := exec.CommandContext(t.Context(), os.Getenv("LULL_E2E_LULL"), "dev", "--events", "-", "--source", "govuk", "--sink", sink, "--install-template",
		"--speed", "10", "--exit-when-idle", "--dump", dump)
	c.Stdin = &events
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	file, err := os.Open(dump)
	ground.Must(t, err)
	defer file.Close()
	got := map[string]string{}
	for s := bufio.NewScanner(file); s.Scan(); {
		var d struct {
			ID       string    `json:"id"`
			Version  string    `json:"version"`
			Document govukPage `json:"document"`
		}
		ground.Must(t, json.Unmarshal(s.Bytes(), &d))
		id := strings.TrimSuffix(d.ID, ":en")
		got[id] = d.Version
		if !strings.HasSuffix(d.Document.Title, "version "+d.Version) {
			t.Errorf("%s in version %s is titled %q", id, d.Version, d.Document.Title)
		}
	}
	for id, version := range want {
		if got[id] != version {
			t.Errorf("%s: version %q, want %q", id, got[id], version)
		}
		delete(got, id)
	}
	for id, version := range got {
		t.Errorf("%s: version %q of a page that is withdrawn", id, version)
	}
}
