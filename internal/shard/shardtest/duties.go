// SPDX-License-Identifier: Apache-2.0

package shardtest

import (
	"fmt"
	"math"
	"strings"

	"github.com/lullhq/lull/internal/seam/storetest"
	"github.com/lullhq/lull/internal/shard"
)

// Duty is a promise that every store keeps, in addition to the [Cases].
type Duty struct {
	Name  string
	Scan  bool // only for a [shard.Scanner]
	Check func(e *Env)
}

// Duties returns the promises in the comments of [shard.Store], [shard.Scanner], [shard.OwnClaim]
// and [shard.Ended].
func Duties() []Duty {
	return []Duty{
		{Name: "the row of an absent document has only the key", Check: absentRows},
		{Name: "rows are returned in the order of the documents, also duplicates and absent rows", Check: readOrder},
		{Name: "reading nothing succeeds", Check: readNothing},
		{Name: "a consistent read sees every write before it", Check: readYourWrites},
		{Name: "every attribute is read back unchanged", Check: roundTrip},
		{Name: "a write to an absent row returns an absent row", Check: createRow},
		{Name: "a refusal on an absent row returns an absent row", Check: refuseAbsent},
		{Name: "of forty claimers of one version one wins, and the others see the winner's token", Check: claimRace},
		{Name: "the winners of many claims have growing fences", Check: fences},
		{Name: "admissions in any order leave the newest pending", Check: admitRace},
		{Name: "parallel additions are all counted", Check: addRace},
		{Name: "a claim whose answer was lost is recognised by its token", Check: lostClaim},
		{Name: "a write that ends a lease is recognised if its answer was lost", Check: lostEnd},
		{Name: "a call under a context that has ended fails", Check: endedContext},
		{Name: "a scan sees each row once, in any number of segments and pages", Scan: true, Check: scan},
	}
}

func absentRows(e *Env) { e.expect(shard.Row{Doc: e.Doc()}) }

func readNothing(e *Env) {
	e.read(shard.Eventual)
	e.read(shard.Consistent)
}

// readOrder reads more rows than one batch call returns.
func readOrder(e *Env) {
	const n = 130
	rows := make([]shard.Row, n)
	for i := range rows {
		rows[i] = shard.Row{Doc: e.Doc()}
		if i%3 != 0 {
			rows[i].Refusals = int64(i)
			e.put(rows[i])
		}
	}
	var docs []shard.DocID
	var want []shard.Row
	for i := range 2 * n {
		r := rows[i*37%n]
		docs, want = append(docs, r.Doc), append(want, r)
	}
	consistent, eventual := e.read(shard.Consistent, docs...), e.read(shard.Eventual, docs...)
	for i := range want {
		e.same(fmt.Sprintf("row %d", i), consistent[i], want[i])
		if eventual[i].Doc != docs[i] { // the other attributes may be out of date
			e.Errorf("row %d of an eventual read is %s, want %s", i, eventual[i].Doc, docs[i])
		}
	}
}

func readYourWrites(e *Env) {
	r := shard.Row{Doc: e.Doc()}
	for r.Level < 20 {
		r.Level++
		e.holds(r)
	}
}

// holds writes a row and reads it back.
func (e *Env) holds(r shard.Row) {
	e.Helper()
	e.put(r)
	e.expect(r)
}

// extremes returns a row with values that are hard to store in every attribute.
func extremes(doc shard.DocID) shard.Row {
	return shard.Row{
		Doc: doc, Schema: math.MaxInt64, VersionClass: shard.ClassLSN, Pending: "\x00\x00\xff\xfe", Committed: k3,
		CommittedOp: shard.Delete,
		Claimed:     shard.OrderKey(strings.Repeat("\xff", 108)), ClaimedWas: shard.Lowest, Dead: "\x80",
		BurstStart: math.MaxInt64,
		Flight:     "01JV0000000000000000000000", Group: "größer ✓", Owner: "\"token\"",
		LeaseUntil: 1, LastWrite: 1<<53 + 1, Attempts: -1,
		Refusals:  math.MinInt64,
		TakenBack: shard.KeySetOf(k1, k3, "\x00", "\xff\xfe"),
		Content:   "\x00\xffcontent", LastError: "größer ✓\n\x7f", ExpiresAt: expires, OpenUntil: 2, Level: 3, ProbeUntil: 4, RanAt: 5,
		Rate: 6, RateTop: 7, RateAt: 8, PaidUntil: 9, Paid: 10,
		SentUntil: 12, PausedAt: 11, PausedBy: "ann", PausedWhy: "größer",
		RebuildOf: "content", RebuildInto: "content.r2", RebuildAt: 12, RebuildMissed: 13, RebuildSeal: 14,
		Cursor: "!run#\x01",
	}
}

func roundTrip(e *Env) {
	r := extremes(e.Doc())
	e.holds(r)
	for _, a := range shard.Attrs() { // write each attribute alone, then remove it again
		v, ok := r.Get(a)
		if !ok {
			e.Fatalf("%s is not set in the sample", a)
		}
		one := shard.Row{Doc: r.Doc}
		one.Set(a, v)
		e.holds(one)
	}
	e.holds(shard.Row{Doc: r.Doc})
}

func createRow(e *Env) {
	doc := e.Doc()
	w := shard.Admit(shard.Admission{Doc: doc, Key: k1, Class: shard.ClassInt, Flight: "f", Now: now})
	old, _ := e.try(w)
	e.same("image before", old, shard.Row{Doc: doc})
	e.expect(w.Apply(old))
}

func refuseAbsent(e *Env) {
	doc := e.Doc()
	claim := shard.Claim(shard.Bid{Doc: doc, Key: k1, Token: token, Now: now, Until: until})
	e.same("image", e.refused(claim, "of an absent row"), shard.Row{Doc: doc})
	e.expect(shard.Row{Doc: doc})
}

func endedContext(e *Env) {
	ended, doc := storetest.Ended(e), e.Doc()
	_, write := e.Store.Write(ended, Put(shard.Row{Doc: doc, Level: 1}))
	_, read := e.Store.Read(ended, []shard.DocID{doc}, shard.Consistent)
	storetest.Failed(e, map[string]error{"write": write, "read": read})
	if _, refused := shard.AsRefused(write); refused {
		e.Errorf("write: %v, want an error other than a refusal", write)
	}
}

func scan(e *Env) {
	s, ok := e.Store.(shard.Scanner)
	if !ok {
		e.Fatalf("the store is not a Scanner")
	}
	want := map[shard.DocID]shard.Row{}
	for i := range int64(60) {
		r := shard.Row{Doc: e.Doc(), Pending: k1, Refusals: i}
		e.put(r)
		want[r.Doc] = r
	}
	for _, split := range []struct{ segments, limit int }{{1, 1000}, {1, 7}, {4, 5}, {3, 1}} {
		seen := map[shard.DocID]bool{}
		for segment := range split.segments {
			page := func(cursor string, limit int) ([]shard.Row, string, error) {
				return s.Scan(e.Context(), segment, split.segments, cursor, limit)
			}
			for _, r := range storetest.Walk(e, split.limit, page) {
				w, mine := want[r.Doc]
				if !mine {
					continue // the row of a test that runs at the same time
				}
				if seen[r.Doc] {
					e.Fatalf("%s was seen twice in %d segments", r.Doc, split.segments)
				}
				seen[r.Doc] = true
				e.same("scanned row", r, w)
			}
		}
		if len(seen) != len(want) {
			e.Errorf("%d segments, pages of %d: %d rows seen, want %d", split.segments, split.limit, len(seen), len(want))
		}
	}
}
