// SPDX-License-Identifier: Apache-2.0

package prune_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/fault"
	"github.com/lullhq/lull/internal/pipeline/usecasetest"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/internal/shard/shardtest"
	"github.com/lullhq/lull/internal/simulation/price"
)

var update = flag.Bool("update", false, "write the cost of a pass into docs/lifecycles.md (make lifecycles)")

// bill counts prune's requests to the table in a day, in the units that DynamoDB bills.
type bill struct {
	mu                    sync.Mutex
	rows, collected, runs int
	pages                 int
	scanned               float64 // read units of the scan
	fixed                 float64 // write units of the runs' turns
	deleted               float64 // write units of the collected rows
	// number of other requests: the health row, the queries of the two indexes, the list of flights
	other   int
	longest int // the most rows that one run read
}

// readUnit is the number of bytes that half a read unit, an eventually consistent read, returns.
// DynamoDB rounds up the sum of a whole page of a scan.
const readUnit = 4 << 10

// tally counts requests and units as DynamoDB would.
type tally struct {
	scanner shard.Scanner
	shard.Store
	*bill
}

func (t tally) Scan(ctx context.Context, segment, segments int, cursor string, limit int) ([]shard.Row, string, error) {
	rows, next, err := t.scanner.Scan(ctx, segment, segments, cursor, limit)
	bytes := 0
	for _, r := range rows {
		bytes += shardtest.ItemSize(r)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pages++
	t.scanned += price.ReadUnits(bytes, false)
	return rows, next, err
}

func (t tally) Write(ctx context.Context, w shard.Write) (shard.Row, error) {
	old, err := t.Store.Write(ctx, w)
	units := price.WriteUnits(max(shardtest.ItemSize(old), shardtest.ItemSize(w.Apply(old))))
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.Doc.IsDocument() {
		t.deleted += units
	} else {
		t.fixed += units
	}
	return old, err
}

// id makes the id of a document that is as long as a UUID.
func id(i int) shard.DocID {
	return shard.DocID(fmt.Sprintf("content#%08x-7a86-4ce0-aa36-7a63f0bc1bd5", i))
}

// aDay runs prune for a day over a table of committed rows. A hundredth of the rows is past its
// retention. The day is the second day of the table, because on the first day prune does not know
// the size of the table.
func aDay(t *testing.T, rows int) (b *bill) {
	synctest.Test(t, func(t *testing.T) {
		s := setup(t)
		one := s.version(id(0), 1)
		old := rows / 100
		for i := range old {
			s.settle(one, id(i))
		}
		time.Sleep(s.Config.Lifecycle.RowRetention - 12*time.Hour)
		for i := old; i < rows; i++ {
			s.settle(one, id(i))
		}
		perDay := int(day / s.Config.Lifecycle.PruneEvery)
		b = &bill{}
		calls := 0
		for run := range 2 * perDay {
			if run == perDay {
				b, calls = &bill{}, 0
			}
			p, v := s.faulty(decide(func(fault.Op) fault.Verdict {
				b.mu.Lock()
				defer b.mu.Unlock()
				calls++
				return fault.OK
			}))
			counted := tally{scanner: p.Scanner, Store: p.Shards, bill: b}
			p.Scanner, p.Shards, p.Journal = counted, counted, &usecasetest.Notes{}
			rep, err := p.Run(t.Context())
			if err != nil || !rep.Ran || v.Killed() {
				t.Fatalf("run %d: %+v, error %v", run, rep, err)
			}
			b.runs++
			b.rows += rep.Rows.Read
			b.longest = max(b.longest, rep.Rows.Read)
			b.collected += rep.Rows.Collected
			time.Sleep(s.Config.Lifecycle.PruneEvery)
		}
		b.other = calls - b.pages - int(b.fixed) - int(b.deleted)
	})
	return b
}

// settle writes ADMIT, CLAIM and COMMIT of an event, for the document d.
func (b *bench) settle(e event.Event, d shard.DocID) {
	b.Helper()
	e.Doc = d
	b.Admit(e)
	b.Commit(b.Claim(e), shard.Put)
}

// rowBytes returns the size of the rows that aDay makes.
func rowBytes(t *testing.T) (bytes int) {
	synctest.Test(t, func(t *testing.T) {
		s := setup(t)
		s.commit(id(1), 1, shard.Put)
		bytes = shardtest.ItemSize(s.Row(id(1)))
	})
	return bytes
}

// The cost of a day of prune must grow in proportion to the table, apart from DynamoDB's rounding.
// Every row is read once, every page is rounded up once, and every deleted row is one write. The
// cost of the runs themselves does not depend on the table.
func TestADayOfPruneCostsInProportionToTheTable(t *testing.T) {
	t.Parallel()
	sizes := []int{1_000, 10_000, 100_000}
	if testing.Short() {
		sizes = sizes[:2]
	}
	bytes := rowBytes(t)
	var first *bill
	for i, n := range sizes {
		b := aDay(t, n)
		t.Logf("%d rows of %d bytes: %d pages, %.1f read units, %d requests of other kinds, %d rows in a run at most",
			n, bytes, b.pages, b.scanned, b.other, b.longest)
		if b.rows < n || b.rows > n+housekeeping {
			t.Errorf("%d rows were read of %d in a day, want each once", b.rows, n)
		}
		least := float64(n*bytes) / readUnit / 2
		if most := least + float64(b.pages)/2 + 1; b.scanned < least || b.scanned > most {
			t.Errorf("%d rows: %.1f read units, want %.1f to %.1f: each of %d pages rounded up once", n, b.scanned,
				least, most, b.pages)
		}
		if want := n / 100; b.collected != want || b.deleted != float64(want) {
			t.Errorf("%d rows: %d collected for %.0f write units, want %d for as many", n, b.collected, b.deleted, want)
		}
		if i == 0 {
			first = b
		}
		if b.runs != first.runs || b.fixed != first.fixed || b.other != first.other {
			t.Errorf(
				"%d rows: %d runs, %.0f write units of their own, %d other requests; with %d rows it was %d, %.0f, "+
					"%d: want it the same",
				n, b.runs, b.fixed, b.other, sizes[0], first.runs, first.fixed, first.other)
		}
	}
}

// housekeeping is the number of rows that are not documents: the run rows.
const housekeeping = 2

// extrapolated computes the counts for a day of a table with n rows that was not measured.
func extrapolated(n, bytes int, like *bill) *bill {
	b := bill{
		rows: n, collected: n / 100, deleted: float64(n / 100), runs: like.runs, fixed: like.fixed,
		other: like.other, longest: quota(n),
	}
	b.pages = int(math.Ceil(float64(n) / 1000))
	b.scanned = float64(b.pages) * price.ReadUnits(1000*bytes, false)
	return &b
}

// readsOfRun is the number of read units of a run besides rows: the health row, and the eight
// partitions of each of the two indexes, half a unit each. The list of flights is billed like a
// write to the bucket.
const readsOfRun = 0.5 + 2*8*0.5

// quota returns the number of rows that a run reads of a table with n rows: a quarter more than n,
// divided among three quarters of the day's runs.
func quota(n int) int { return max((n+n/4)/216, 2000) }

// TestWriteCost writes the cost table in docs/lifecycles.md.
func TestWriteCost(t *testing.T) {
	if !*update {
		t.Skip("make lifecycles runs it with -update")
	}
	bytes := rowBytes(t)
	var page strings.Builder
	fmt.Fprintf(&page, "Rows of %d bytes, each hundredth past its retention; prices of %s, %s.\n\n", bytes,
		price.USEast1.Region, price.USEast1.Date)
	page.WriteString(
		"| rows | read in a run, at most | pages | read units | writes: rows that go | writes: the runs' own | other " +
			"requests | $ a day |\n|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	line := func(n int, how string, b *bill) {
		usage := price.Usage{
			ReadUnits: b.scanned + float64(b.runs)*readsOfRun, WriteUnits: b.fixed + b.deleted,
			ObjectWrites: float64(b.runs),
		}
		fmt.Fprintf(&page, "| %s%s | %s | %s | %s | %s | %s | %s | %.4f |\n", commas(n), how, commas(b.longest),
			commas(b.pages), commas(int(math.Round(b.scanned))),
			commas(int(b.deleted)), commas(int(b.fixed)), commas(b.other), price.USEast1.Dollars(usage))
	}
	var last *bill
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		last = aDay(t, n)
		line(n, "", last)
		if want := extrapolated(n, bytes, last); n == 1_000_000 &&
			(math.Abs(want.scanned-last.scanned) > 0.1*last.scanned || want.deleted != last.deleted) {
			t.Errorf("the formula gives %.1f read units and %.0f writes, but measured were %.1f and %.0f", want.scanned,
				want.deleted, last.scanned, last.deleted)
		}
	}
	line(10_000_000, " (by the formula)", extrapolated(10_000_000, bytes, last))
	insert(t, filepath.Join("..", "..", "..", "docs", "lifecycles.md"), "cost", page.String())
}

func commas(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// insert puts text between the two marks of a page that have this name.
func insert(t *testing.T, path, name, text string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": begin, written by make lifecycles -->\n", "<!-- "+name+": end -->"
	before, rest, found := strings.Cut(string(b), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no marks for %s", path, name)
	}
	if err := os.WriteFile(path, []byte(before+begin+text+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	_ shard.Store   = tally{}
	_ shard.Scanner = tally{}
)
