// SPDX-License-Identifier: Apache-2.0

//go:build e2eengines

package engines

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lullhq/lull/e2e/ground"
)

var (
	write   = flag.Bool("write", false, "write the table into its page")
	lengths = flag.String("away", "30s,90s,5m", "for how long the engines are away")
)

const (
	sentEvery = time.Second // the time between two documents, each of which is sent once
	before    = 15 * time.Second
	after     = time.Minute
	patience  = 8 * time.Minute // the limit from the restart until all documents are written
	lookEvery = 250 * time.Millisecond
)

// TestOutages measures how late documents are. It fails only if it cannot measure, or if a document
// is missing.
func TestOutages(t *testing.T) {
	var away []time.Duration
	for _, text := range strings.Split(*lengths, ",") {
		d, err := time.ParseDuration(text)
		ground.Must(t, err)
		away = append(away, d)
	}
	rows := make([][]string, 2)
	t.Run("engines", func(t *testing.T) {
		for i, e := range []engine{postgres(t), openSearch(t)} {
			t.Run(e.server, func(t *testing.T) {
				t.Parallel()
				for n, d := range away {
					rows[i] = append(rows[i], e.outage(t, n, d))
				}
			})
		}
	})
	var table strings.Builder
	table.WriteString("| engine | away | sent after the return: written after, median | longest | " +
		"waited: written after the return, median | longest |\n|---|---:|---:|---:|---:|---:|\n")
	for _, row := range slices.Concat(rows...) {
		table.WriteString(row)
	}
	t.Logf("\n%s", table.String())
	if *write && !t.Failed() {
		generate(t, "docs/lifecycles.md", "outages", table.String())
	}
}

// outage sends documents one by one, kills the engine, starts it again, and returns a row of the
// table.
func (e engine) outage(t *testing.T, n int, away time.Duration) string {
	ctx := t.Context()
	_, address := lull(t, e)
	for deadline := time.Now().Add(time.Minute); ; <-time.After(lookEvery) {
		if c, err := net.Dial("tcp", address); err == nil {
			ground.Must(t, c.Close())
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("lull dev does not listen")
		}
	}
	sent, written := map[string]time.Time{}, map[string]time.Time{}
	next, look := time.Now(), time.Now()
	// goOn sends documents and looks for written documents, until the function until returns true.
	goOn := func(until func() bool, sends bool) {
		for ; !until(); <-time.After(20 * time.Millisecond) {
			if sends && time.Now().After(next) {
				id := fmt.Sprintf("outage-%d-%d", n, len(sent))
				ground.Must(t, ask(ctx, http.MethodPost, "http://"+address+"/publish?source=native",
					fmt.Sprintf(`{"type":"doc.changed","subject":%q,"sequence":"1","data":{}}`, id), nil))
				sent[id], next = time.Now(), next.Add(sentEvery)
			}
			if time.Now().After(look) {
				var open []string
				for id := range sent {
					if _, found := written[id]; !found {
						open = append(open, id)
					}
				}
				asked, cancel := context.WithTimeout(ctx, 2*time.Second)
				for _, id := range e.holds(asked, open) {
					written[id] = time.Now()
				}
				cancel()
				look = time.Now().Add(lookEvery)
			}
		}
	}
	passed := func(d time.Duration) func() bool {
		end := time.Now().Add(d)
		return func() bool { return time.Now().After(end) }
	}
	goOn(passed(before), true)
	ground.Must(t, syscall.Kill(ground.Process(t, e.server, "pid"), syscall.SIGKILL))
	killed := time.Now()
	goOn(passed(away), true)
	ready := make(chan time.Time, 1)
	go func() {
		ground.Script(t, "start.sh", e.server, e.port)
		ready <- time.Now()
	}()
	var back time.Time
	goOn(func() bool {
		select {
		case back = <-ready:
			return true
		default:
			return false
		}
	}, true)
	goOn(passed(after), true)
	late := passed(patience)
	goOn(func() bool { return len(written) == len(sent) || late() }, false)
	if len(written) < len(sent) {
		t.Errorf("%d of %d documents are in %s %s after its return", len(written), len(sent), e.server, patience)
	}
	var fresh, waited []time.Duration
	for id, at := range written {
		switch {
		case sent[id].After(back):
			fresh = append(fresh, at.Sub(sent[id]))
		case at.After(killed):
			waited = append(waited, max(at.Sub(back), 0))
		}
	}
	slices.Sort(fresh)
	slices.Sort(waited)
	if len(fresh) == 0 || len(waited) == 0 {
		t.Fatalf("%d documents were sent after the return, %d waited for it", len(fresh), len(waited))
	}
	row := fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", e.title, seconds(back.Sub(killed)),
		seconds(fresh[len(fresh)/2]), seconds(fresh[len(fresh)-1]), seconds(waited[len(waited)/2]),
		seconds(waited[len(waited)-1]))
	t.Log(row)
	return row
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
