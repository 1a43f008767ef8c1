package setting

import "strings"

// Nearest returns the candidate that a typing error most likely meant, or "" if none is close.
// Case, hyphens and underscores do not count.
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

// longestName bounds the work for a key of any length.
const longestName = 64

func fold(s string) string {
	if len(s) > longestName {
		s = s[:longestName]
	}
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// editDistance returns the least number of bytes to insert, delete, change or swap with the next
// byte that turns a into b.
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
