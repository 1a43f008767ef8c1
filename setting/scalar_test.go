// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"math"
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "1.5s": 1500 * time.Millisecond, "250ms": 250 * time.Millisecond, "1h30m": 90 * time.Minute,
		"7d":    7 * Day,
		"1d12h": Day + 12*time.Hour, "0s": 0, "0d": 0, " 5s ": 5 * time.Second, "-5s": -5 * time.Second, "106751d": 106751 * Day,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %s and %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "5", "0", "s", "d", "5x", "1.5d", "-1d", "+1d", "1d-1h", "1d+1h", "1dd", "1d2d",
		"106752d", "106751d24h", "12h1d", "9999999999h", "7D", "1 d",
	} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q: got %s, want it refused", text, got)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 5 * time.Second: "5s", time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour: "1h", 25 * time.Hour: "25h",
		Day: "1d", 14 * Day: "14d",
		10 * time.Minute: "10m", 61 * time.Minute: "1h1m", time.Hour + time.Second: "1h0m1s", 100 * time.Millisecond: "100ms",
		-Day: "-24h",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{
		"0": 0, "0B": 0, "1B": 1, "1000": 1000, "256KB": 256 << 10, "5 MB": 5 << 20, "1GB": 1 << 30,
		"9223372036854775807": math.MaxInt64,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: got %d and %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "B", "KB", "-1", "1.5MB", "1kb", "1TB", "9223372036854775808",
		"9007199254740992KB", "1KBB", "0x10", "1_000", "01027", "010MB",
	} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q: got %d, want it refused", text, got)
		}
	}
	for s, want := range map[Size]string{
		0: "0B", 1: "1B", 1023: "1023B", KB: "1KB", 1536: "1536B", 5 * MB: "5MB",
		3 * GB: "3GB", 2048 * GB: "2048GB",
	} {
		if got := s.String(); got != want {
			t.Errorf("%d: got %s, want %s", int64(s), got, want)
		}
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rate{
		"20": 20_000, "0.5": 500, "0.001": 1, "1_000": 1_000_000, " 2.25 ": 2250, "0": 0, "0.10": 100,
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%q: got %d and %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ".5", "5.", "-1", "+1", "1e3", "0.0005", "007", "1__0", "10_00", "5/s", "99999999999999999999",
	} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("%q: got %d, want it refused", text, got)
		}
	}
	for rate, want := range map[Rate]string{20_000: "20", 500: "0.5", 1: "0.001", 10_000_000: "10000", 0: "0"} {
		if got := rate.String(); got != want {
			t.Errorf("%d: got %s, want %s", int64(rate), got, want)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"5s", "7d", "1d12h30m", "1.5h", "-3ms", "106751d23h47m16.854775807s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			return
		}
		if again, err := ParseDuration(FormatDuration(d)); err != nil || again != d {
			t.Errorf("%q: %s was written as %s and read as %s, %v", text, d, FormatDuration(d), again, err)
		}
	})
}

func FuzzSize(f *testing.F) {
	for _, seed := range []string{"0", "256KB", "5 MB", "8191PB", "9223372036854775807B"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSize(text)
		if err != nil {
			return
		}
		if again, err := ParseSize(s.String()); err != nil || again != s || s < 0 {
			t.Errorf("%q: %d was written as %s and read as %d, %v", text, int64(s), s, int64(again), err)
		}
	})
}

func FuzzRate(f *testing.F) {
	for _, seed := range []string{"0", "20", "0.5", "1_000.125", "9223372036854775.807"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRate(text)
		if err != nil || r > 1<<50 {
			return // a higher rate has more digits than String prints exactly
		}
		if again, err := ParseRate(r.String()); err != nil || again != r || r < 0 {
			t.Errorf("%q: %d was written as %s and read as %d, %v", text, int64(r), r, int64(again), err)
		}
	})
}
