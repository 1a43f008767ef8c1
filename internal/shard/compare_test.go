// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"slices"
	"testing"

	"github.com/lullhq/lull/internal/shard"
)

func TestCompareSaysWhatHelps(t *testing.T) {
	t.Parallel()
	key := func(version string) shard.OrderKey { return orderKey(t, shard.ClassInt, version) }
	const kept, past, quiet = shard.Micros(1_000), shard.Micros(5_000), shard.Micros(9_000)
	put := shard.Row{VersionClass: shard.ClassInt, Committed: key("5"), CommittedOp: shard.Put, LastWrite: past}
	deleted := put
	deleted.CommittedOp = shard.Delete
	pending := func(r shard.Row, version string) shard.Row {
		r.Pending = key(version)
		return r
	}
	leased := func(until shard.Micros) shard.Row {
		r := put
		r.LeaseUntil = until
		return r
	}
	foreign, fresh := put, put
	foreign.Schema, fresh.LastWrite = shard.SchemaVersion+1, quiet
	old := func(version string, at shard.Fence) shard.InSink { return shard.InSink{Key: key(version), Fence: at} }
	at := func(version string) shard.InSink { return old(version, shard.Fence(past)) }
	dated := shard.InSink{Key: orderKey(t, shard.ClassTime, "2026-01-02T03:04:05Z")}
	none := shard.InSink{}
	reset := put
	three, err := shard.ParseVersion(shard.ClassInt, "3")
	if err == nil {
		reset.Committed, err = shard.Floor(0, three)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		row  shard.Row
		copy shard.InSink
		want shard.Difference
	}{
		"a copy of the same version":                           {put, at("5"), shard.NoDifference},
		"a delete, and no copy":                                {deleted, none, shard.NoDifference},
		"neither row nor copy":                                 {shard.Row{}, none, shard.NoDifference},
		"a row without a commit, and no copy":                  {shard.Row{Pending: key("5")}, none, shard.NoDifference},
		"a newer copy":                                         {put, at("6"), shard.Behind},
		"a copy newer than a delete":                           {deleted, at("6"), shard.Behind},
		"a newer copy, and a newer version pending":            {pending(put, "7"), at("6"), shard.Behind},
		"a young copy without a row":                           {shard.Row{}, at("5"), shard.Behind},
		"a copy older than rows are kept, and no row":          {shard.Row{}, old("5", 999), shard.NoDifference},
		"a copy as old as rows are kept, and no row":           {shard.Row{}, old("5", 1_000), shard.Behind},
		"a copy older than rows are kept, and a commit":        {put, old("6", 999), shard.Behind},
		"a copy older than a delete":                           {deleted, at("4"), shard.Undone},
		"a copy older than a delete, a newer version pending":  {pending(deleted, "6"), at("4"), shard.Waiting},
		"a copy older than a delete, an older version pending": {pending(deleted, "5"), at("4"), shard.Undone},
		"a copy older than a put":                              {put, at("4"), shard.Older},
		"no copy of a put":                                     {put, none, shard.Missing},
		"no copy of a put, and a newer version pending":        {pending(put, "6"), none, shard.Waiting},
		"a copy of another class":                              {put, dated, shard.OtherClass},
		"a row of a newer schema":                              {foreign, at("6"), shard.Busy},
		"a lease that has just ended":                          {leased(quiet), at("6"), shard.Busy},
		"a lease that ended before":                            {leased(quiet - 1), at("6"), shard.Behind},
		"a copy from before a reset":                           {reset, at("6"), shard.Waiting},
		"no copy after a reset":                                {reset, none, shard.Waiting},
		"a copy that is newer than a reset":                    {reset, old("6", shard.Fence(past)+1), shard.Behind},
		"a commit a moment ago":                                {fresh, none, shard.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := shard.Compare(tt.row, tt.copy, quiet, kept); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			passes := []shard.Difference{shard.NoDifference, shard.Busy, shard.Waiting}
			if got := tt.want.Drift(); got == slices.Contains(passes, tt.want) {
				t.Errorf("Drift of %s is %t", tt.want, got)
			}
		})
	}
}

func orderKey(t *testing.T, class shard.Class, version string) shard.OrderKey {
	t.Helper()
	v, err := shard.ParseVersion(class, version)
	if err != nil {
		t.Fatal(err)
	}
	k, err := shard.NewOrderKey(shard.Parts{Version: v, Digest: shard.Digest{1}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}
