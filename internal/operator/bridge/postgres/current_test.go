// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
)

// rowsRead is a script of what queries see: each read takes the next reading, and the last one
// repeats.
type rowsRead struct {
	readings []*reading
	errs     []error // of the first reads
	at       pglogrepl.LSN
	busy     int // how often a transaction of xmax still runs
	reads    int
	waited   time.Duration
}

func (s *rowsRead) read(context.Context, *table, row) (*reading, error) {
	s.reads++
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return nil, err
	}
	r := s.readings[0]
	if len(s.readings) > 1 {
		s.readings = s.readings[1:]
	}
	return r, nil
}

func (s *rowsRead) position(context.Context) (pglogrepl.LSN, error) { return s.at, nil }

func (s *rowsRead) runs(context.Context, *reading) (bool, error) {
	s.busy--
	return s.busy >= 0, nil
}

func (s *rowsRead) wait(_ context.Context, d time.Duration) error {
	if s.waited += d; s.waited > time.Hour {
		return errors.New("waited for an hour")
	}
	return nil
}

// Each rule of the package's documentation about values that PostgreSQL does not send.
func TestARowThatIsReadAgain(t *testing.T) {
	t.Parallel()
	const xid = 100
	change := version{500, 400}
	see := func(snapshot, xmin, xmax, ctid, value string) *reading {
		s, err := parseSnapshot(snapshot)
		if err != nil {
			t.Fatal(err)
		}
		r := &reading{snapshot: s, xmin: xmin, xmax: xmax, ctid: ctid, table: &table{}}
		if value != "" {
			r.row = row{[]byte(value)}
		}
		return r
	}
	const after = "101:101:"
	for name, tt := range map[string]struct {
		s       rowsRead
		value   string // "" for none
		version version
		reads   int
		failure bool
	}{
		"1: not visible, then the transaction's own": {
			rowsRead{readings: []*reading{
				see("100:101:100", "90", "100", "(0,1)", "old"), see("90:100:", "90", "0", "(0,1)", "old"),
				see(after, "100", "0", "(0,2)", "own"),
			}}, "own", version{500, 500}, 3, false,
		},
		"2: gone": {rowsRead{readings: []*reading{see(after, "", "", "", "")}}, "", version{}, 1, false},
		"3: the transaction's own": {
			rowsRead{readings: []*reading{see(after, "100", "0", "(0,2)", "own")}}, "own", version{500, 500}, 1, false,
		},
		"4: changed later": {
			rowsRead{readings: []*reading{see("110:110:", "105", "0", "(0,3)", "later")}, at: 900},
			"later",
			version{900, 0},
			2, false,
		},
		"4: changed between the queries": {
			rowsRead{readings: []*reading{
				see("110:110:", "105", "0", "(0,3)", "later"), see("112:112:", "111", "0", "(0,4)", "latest"),
			}, at: 900},
			"latest",
			version{900, 0},
			4, false,
		},
		"4: a transaction has begun to change it": {
			rowsRead{readings: []*reading{
				see("110:110:", "105", "0", "(0,3)", "later"), see("110:112:111", "105", "111", "(0,3)", "later"),
				see("112:112:", "111", "0", "(0,4)", "latest"),
			}, at: 900},
			"latest",
			version{900, 0},
			4, false,
		},
		"4: a lock that has ended": {
			rowsRead{readings: []*reading{see("110:110:", "105", "107", "(0,3)", "later")}, at: 900},
			"later",
			version{900, 0},
			2, false,
		},
		"5: busy for a moment": {
			rowsRead{readings: []*reading{see("107:110:107", "105", "107", "(0,3)", "later")}, at: 900, busy: 3},
			"later",
			version{900, 0},
			5, false,
		},
		"5: busy for long": {
			rowsRead{readings: []*reading{see("107:110:107", "105", "107", "(0,3)", "later")}, at: 900, busy: 1 << 20},
			"later", change, 0, false,
		},
		"locked": {
			rowsRead{readings: []*reading{see(after, "100", "0", "(0,2)", "own")}, errs: []error{errLocked, errLocked}},
			"own",
			version{500, 500},
			3, false,
		},
		"dropped": {rowsRead{readings: []*reading{nil}}, "", version{}, 1, false},
		"failed":  {rowsRead{errs: []error{errors.New("connection reset")}}, "", version{}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r, v, err := current(t.Context(), &tt.s, &table{}, row{}, xid, change)
			if (err != nil) != tt.failure {
				t.Fatal(err)
			}
			got := ""
			if r != nil {
				got = string(r[0])
			}
			if got != tt.value || v != tt.version || tt.reads > 0 && tt.s.reads != tt.reads {
				t.Errorf("got %q with version %v after %d reads, want %q with %v after %d", got, v, tt.s.reads, tt.value,
					tt.version, tt.reads)
			}
			if tt.version == change && (tt.s.waited < busyPatience || tt.s.waited > 2*busyPatience) {
				t.Errorf("waited %s", tt.s.waited)
			}
		})
	}
}

func TestASnapshotSeesTransactionsOfItsEpoch(t *testing.T) {
	t.Parallel()
	const epoch = 1 << 32
	s, err := parseSnapshot("4294967306:4294967400:4294967306,4294967310")
	if err != nil {
		t.Fatal(err)
	}
	for xid, want := range map[uint32]bool{
		9: true, 10: false, 11: true, 14: false, 103: true, 104: false, 105: false, 1<<32 - 5: true,
	} {
		if got := s.sees(xid); got != want {
			t.Errorf("sees %d: %t", xid, got)
		}
	}
	if a, b := s.full(1<<32-5), s.full(7); a != epoch-5 || b != epoch+7 {
		t.Errorf("got %d and %d", a, b)
	}
	for _, text := range []string{"", "1:2", "a:2:", "1:2:x"} {
		if _, err := parseSnapshot(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestVersionsCompareAsNumbers(t *testing.T) {
	t.Parallel()
	const most = pglogrepl.LSN(1<<64 - 1)
	if got := (version{most, most}).String(); len(got) != 40 {
		t.Errorf("got %s, which has more than 40 digits", got)
	}
	if got := (version{24023119, 7}).String(); got != "2402311900000000000000000007" {
		t.Errorf("got %s", got)
	}
}
