// SPDX-License-Identifier: Apache-2.0

package setting

import "strings"

// Nearest returns the candidate that the writer of a misspelt name most likely meant, or "" if no
// candidate is similar. Case, hyphens and underscores do not count.
func Nearest(typed string, candidates []string) string {
	best, distance := "", 0
	for _, c := range candidates {
		d := editDistance(fold(typed), fold(c))
		if d <= max(2, len(c)/3) && d < len(c) && (best == "" || d < distance) {
			best, distance = c, d
		}
	}
	return best
}

// longestName is how many bytes of a name are compared, so that a very long name costs little time.
const longestName = 64

func fold(s string) string {
	if len(s) > longestName {
		s = s[:longestName]
	}
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// editDistance returns the least number of edits that turn a into b. An edit inserts, deletes or
// changes one byte, or swaps a byte with the next one.
func editDistance(a, b string) int {
	before, last, this := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		this[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			this[j] = min(last[j]+1, this[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				this[j] = min(this[j], before[j-2]+1)
			}
		}
		before, last, this = last, this, before
	}
	return last[len(b)]
}
