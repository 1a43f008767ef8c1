package shardtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/lullhq/lull/internal/shard"
)

// Duty is something that every store does, besides the [Cases].
type Duty struct {
	Name  string
	Scan  bool // of a [shard.Scanner]
	Check func(ctx context.Context, e *Env) error
}

// Duties are the promises in the comments of [shard.Store], [shard.Scanner], [shard.OwnClaim] and
// [shard.Ended].
func Duties() []Duty {
	return []Duty{
		{Name: "an absent document reads as a row with its key only", Check: absentRows},
		{Name: "rows come in the order asked, duplicates and absent ones among them", Check: readOrder},
		{Name: "reading nothing succeeds", Check: readNothing},
		{Name: "a consistent read sees every write before it", Check: readYourWrites},
		{Name: "every attribute comes back as it was written", Check: roundTrip},
		{Name: "a write to an absent row shows it as absent before", Check: createRow},
		{Name: "a refusal on an absent row shows it as absent", Check: refuseAbsent},
		{Name: "forty claimers of one version: one wins, the others see its token", Check: claimRace},
		{Name: "the winners of many claims have growing fences", Check: fences},
		{Name: "admissions in any order leave the newest pending", Check: admitRace},
		{Name: "additions at once are all counted", Check: addRace},
		{Name: "a claim whose answer was lost is recognised by its own token", Check: lostClaim},
		{Name: "a write that ends a lease is recognised where its answer was lost", Check: lostEnd},
		{Name: "a call under a context that has ended fails", Check: endedContext},
		{Name: "a scan sees each row once, in any number of segments and pages", Scan: true, Check: scan},
	}
}

// answer words an error that may be none.
func answer(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

func absentRows(ctx context.Context, e *Env) error { return e.expect(ctx, shard.Row{Doc: e.Doc()}) }

func readNothing(ctx context.Context, e *Env) error {
	for _, c := range []shard.Consistency{shard.Eventual, shard.Consistent} {
		rows, err := e.Store.Read(ctx, nil, c)
		if err != nil || len(rows) != 0 {
			return fmt.Errorf("got %d rows and %s, want none", len(rows), answer(err))
		}
	}
	return nil
}

// readOrder asks for more than one batch call takes.
func readOrder(ctx context.Context, e *Env) error {
	const n = 130
	rows := make([]shard.Row, n)
	for i := range rows {
		rows[i] = shard.Row{Doc: e.Doc()}
		if i%3 != 0 {
			rows[i].Refusals = int64(i)
			if err := e.put(ctx, rows[i]); err != nil {
				return err
			}
		}
	}
	var docs []shard.DocID
	var want []shard.Row
	for i := range 2 * n {
		r := rows[i*37%n]
		docs, want = append(docs, r.Doc), append(want, r)
	}
	for _, c := range []shard.Consistency{shard.Consistent, shard.Eventual} {
		got, err := e.Store.Read(ctx, docs, c)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if len(got) != len(want) {
			return fmt.Errorf("got %d rows, want %d", len(got), len(want))
		}
		for i := range want {
			if c == shard.Eventual {
				want[i] = shard.Row{Doc: want[i].Doc} // what it says may be old
				got[i] = shard.Row{Doc: got[i].Doc}
			}
			if err := same(fmt.Sprintf("row %d", i), got[i], want[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func readYourWrites(ctx context.Context, e *Env) error {
	r := shard.Row{Doc: e.Doc()}
	for i := range int64(20) {
		r.Level = i + 1
		if err := errors.Join(e.put(ctx, r), e.expect(ctx, r)); err != nil {
			return err
		}
	}
	return nil
}

// extremes has in every attribute what is hardest to carry.
func extremes(doc shard.DocID) shard.Row {
	return shard.Row{
		Doc: doc, Schema: math.MaxInt64, VersionClass: shard.ClassLSN, Pending: "\x00\x00\xff\xfe", Committed: k3,
		CommittedOp: shard.Delete,
		Claimed:     shard.OrderKey(strings.Repeat("\xff", 108)), ClaimedWas: shard.Lowest, Dead: "\x80",
		BurstStart: math.MaxInt64,
		Flight:     "01JV0000000000000000000000", Owner: "\"token\"", LeaseUntil: 1, LastWrite: 1<<53 + 1, Attempts: -1,
		Refusals: math.MinInt64,
		Content:  "\x00\xffcontent", LastError: "größer ✓\n\x7f", ExpiresAt: expires, OpenUntil: 2, Level: 3, ProbeUntil: 4, RanAt: 5,
		Rate: 6, RateTop: 7, RateAt: 8, PaidUntil: 9, Paid: 10,
		SentUntil: 12, PausedAt: 11, PausedBy: "ann", PausedWhy: "größer",
		RebuildOf: "content", RebuildInto: "content.r2", RebuildAt: 12, RebuildMissed: 13, RebuildSeal: 14,
		Cursor: "!run#\x01",
	}
}

func roundTrip(ctx context.Context, e *Env) error {
	r := extremes(e.Doc())
	if err := errors.Join(e.put(ctx, r), e.expect(ctx, r)); err != nil {
		return err
	}
	for _, a := range shard.Attrs() { // each attribute alone, and gone again
		v, ok := r.Get(a)
		if !ok {
			return fmt.Errorf("%s is not set in the sample", a)
		}
		one := shard.Row{Doc: r.Doc}
		one.Set(a, v)
		if err := errors.Join(e.put(ctx, one), e.expect(ctx, one)); err != nil {
			return err
		}
	}
	none := shard.Row{Doc: r.Doc}
	return errors.Join(e.put(ctx, none), e.expect(ctx, none))
}

func createRow(ctx context.Context, e *Env) error {
	doc := e.Doc()
	w := shard.Admit(shard.Admission{Doc: doc, Key: k1, Class: shard.ClassInt, Flight: "f", Now: now})
	old, err := e.Store.Write(ctx, w)
	if err != nil {
		return fmt.Errorf("admit: %w", err)
	}
	return errors.Join(same("image before", old, shard.Row{Doc: doc}), e.expect(ctx, w.Apply(old)))
}

func refuseAbsent(ctx context.Context, e *Env) error {
	doc := e.Doc()
	claim := shard.Claim(shard.Bid{Doc: doc, Key: k1, Token: token, Now: now, Until: until})
	image, err := e.refusal(ctx, claim, "of an absent row")
	if err != nil {
		return err
	}
	return errors.Join(same("image", image, shard.Row{Doc: doc}), e.expect(ctx, shard.Row{Doc: doc}))
}

func scan(ctx context.Context, e *Env) error {
	s, ok := e.Store.(shard.Scanner)
	if !ok {
		return errors.New("the store is not a Scanner")
	}
	want := map[shard.DocID]shard.Row{}
	for i := range int64(60) {
		r := shard.Row{Doc: e.Doc(), Pending: k1, Refusals: i}
		if err := e.put(ctx, r); err != nil {
			return err
		}
		want[r.Doc] = r
	}
	for _, split := range []struct{ segments, limit int }{{1, 1000}, {1, 7}, {4, 5}, {3, 1}} {
		seen := map[shard.DocID]bool{}
		for segment := range split.segments {
			for cursor := ""; ; {
				rows, next, err := s.Scan(ctx, segment, split.segments, cursor, split.limit)
				if err != nil {
					return fmt.Errorf("scan: %w", err)
				}
				if len(rows) > split.limit {
					return fmt.Errorf("a page has %d rows, want at most %d", len(rows), split.limit)
				}
				for _, r := range rows {
					w, mine := want[r.Doc]
					if !mine {
						continue // of a test beside this one
					}
					if seen[r.Doc] {
						return fmt.Errorf("%s was seen twice in %d segments", r.Doc, split.segments)
					}
					seen[r.Doc] = true
					if err := same("scanned row", r, w); err != nil {
						return err
					}
				}
				if cursor = next; cursor == "" {
					break
				}
			}
		}
		if len(seen) != len(want) {
			return fmt.Errorf("%d segments, pages of %d: %d rows seen, want %d", split.segments, split.limit, len(seen),
				len(want))
		}
	}
	return nil
}
