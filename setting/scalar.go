// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Day is 24 hours.
const Day = 24 * time.Hour

// Size is a number of bytes. Its text is a whole number with B, KB, MB or GB. As in the limits of
// SQS, KB, MB and GB are powers of 1,024.
type Size int64

// The units of Size.
const (
	KB Size = 1 << 10
	MB Size = 1 << 20
	GB Size = 1 << 30
)

var sizeUnits = []struct {
	suffix string
	size   Size
}{{"GB", GB}, {"MB", MB}, {"KB", KB}, {"B", 1}}

var (
	errSize     = errors.New("not a size: write a whole number with B, KB, MB or GB, such as 256KB")
	errDuration = errors.New("not a duration: write a number with ms, s, m, h or d, such as 5s or 7d")
	errRate     = errors.New("not a rate: write a number a second with three decimals at most, such as 20 or 0.5")
)

// ParseSize parses a Size such as "256KB", "5 MB" or "1048576" (bytes). Negative sizes, fractions,
// numbers such as 010, and sizes beyond int64 are errors.
func ParseSize(text string) (Size, error) {
	number, unit := strings.TrimSpace(text), Size(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = strings.TrimRight(rest, " "), u.size
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	octal := len(number) > 1 && number[0] == '0' // YAML 1.1 would read the digits as an octal number
	if err != nil || octal || n > uint64(math.MaxInt64/unit) {
		return 0, errSize
	}
	return Size(n) * unit, nil
}

// String returns the size in the largest unit that divides it, so that ParseSize returns it again.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s >= u.size && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// Rate is how often something may happen, in thousandths a second.
type Rate int64

// OncePerSecond is the Rate of once a second.
const OncePerSecond Rate = 1000

var ratePattern = regexp.MustCompile(`^(0|[1-9][0-9]*(?:_[0-9]{3})*)(?:\.([0-9]{1,3}))?$`)

// ParseRate parses a Rate, which is written as a number a second: "20", "1_000" or "0.5".
func ParseRate(text string) (Rate, error) {
	found := ratePattern.FindStringSubmatch(strings.TrimSpace(text))
	if found == nil {
		return 0, errRate
	}
	whole, part := strings.ReplaceAll(found[1], "_", ""), found[2]
	n, err := strconv.ParseUint(whole+part+"000"[len(part):], 10, 63)
	if err != nil {
		return 0, errRate
	}
	return Rate(n), nil
}

// String returns the rate as a number a second, so that ParseRate returns it again.
func (r Rate) String() string {
	return strconv.FormatFloat(float64(r)/float64(OncePerSecond), 'f', -1, 64)
}

// ParseDuration parses a duration in Go's form, and also days: "5s", "1h30m", "7d", "1d12h". A day
// is 24 hours.
func ParseDuration(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if text == "0" {
		return 0, errDuration // every duration needs a unit, even 0
	}
	number, rest, found := strings.Cut(text, "d")
	if !found {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, errDuration
		}
		return d, nil
	}
	days, err := strconv.ParseUint(number, 10, 31)
	if err != nil || days > uint64(math.MaxInt64/int64(Day)) {
		return 0, errDuration
	}
	d := time.Duration(days) * Day
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if err != nil || more < 0 || more > math.MaxInt64-d || rest[0] == '+' {
		return 0, errDuration
	}
	return d + more, nil
}

// FormatDuration writes a duration in the form that ParseDuration reads. It writes whole days as
// days, and no units of zero.
func FormatDuration(d time.Duration) string {
	if d != 0 && d%Day == 0 && d > 0 {
		return fmt.Sprintf("%dd", d/Day)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
