// SPDX-License-Identifier: Apache-2.0

package prose

import "regexp"

// MaxWords is the length of the longest sentence, and MaxColumns that of the longest line.
const (
	MaxWords   = 25
	MaxColumns = 100
)

// word is a private word or a construction that readers trip over, and what to write instead.
type word struct {
	pattern *regexp.Regexp
	instead string
}

// words is the table of docs/glossary.md, turned round: what the field's words replaced.
var words = []word{
	// RE2 cannot look behind, so a pattern consumes the word before it and allowed takes out the good ones.
	{regexp.MustCompile(`(?i)\b(?:is|are|was|were) no [a-z]+`), "is not a, or without"},
	{regexp.MustCompile(`(?i)\bletter(?:s|ed)?\b`), "dead letter"},
	{regexp.MustCompile(`(?i)\bmend(?:s|ed|ing)?\b`), "fix"},
	{regexp.MustCompile(`(?i)\b(?:make|makes|made) good\b`), "recover"},
	{regexp.MustCompile(`(?i)\bunwell\b`), "unhealthy"},
	{regexp.MustCompile(`(?i)\bgates?\b`), "circuit breaker"},
	{regexp.MustCompile(`(?i)\bdesks?\b`), "service"},
	{regexp.MustCompile(`(?i)\bbooks?\b`), "counters"},
	{regexp.MustCompile(`(?i)\bworth a write\b`), "superseded, stale or duplicate"},
	{regexp.MustCompile(`(?i)\bmay we\b`), "access denied"},
}

// plain are the folders whose texts have none of the textWords. Add a folder when its texts are
// rewritten.
var plain = regexp.MustCompile(`^(?:event|functions|infra|setting|sink|source` +
	`|internal/(?:aws|config|console|deploy|fault|local|shard))/`)

// textWords are words and constructions that texts of the plain folders may not contain: errors,
// help, alarms and log lines. The listed words leave out the actor, or are not today's words.
var textWords = []word{
	{regexp.MustCompile(`(?i)\b(?:nobody|somebody|anybody|whoever)\b`), "the actor: an operator, another program"},
	{regexp.MustCompile(`(?i)\banew\b`), "again"},
	{regexp.MustCompile(`(?i)\bmeanwhile\b`), "in the meantime"},
	{regexp.MustCompile(`(?i)\b(?:goes|went|going) on\b`), "continues"},
	{regexp.MustCompile(`(?i)\b(?:comes|came) back\b`), "returns"},
	{regexp.MustCompile(`(?i)\bstands? (?:beside|for|there)\b`), "is set together with, means, or is"},
	{regexp.MustCompile(`(?i)\bbecomes of\b`), "happens to"},
	{regexp.MustCompile(`(?i)\b(?:witness|testif(?:y|ies)|bur(?:y|ies|ied))\b`), "the glossary's word"},
	{regexp.MustCompile(`(?i)\b(?:strangers?|neighbou?rs?)\b`), "another document, or another program"},
}

// allowed holds what the words above would hit by mistake: existence, alphabets and comparisons.
var allowed = regexp.MustCompile(`(?i)\bthere (?:is|are|was|were) no\b|\b(?:is|are|was|were) no (?:longer|more|less)\b` +
	`|\bdead[ -]letters?\b|\b(?:lower-case|upper-case|capital|small|first|one|two|\d+) letters?\b|\bletters and digits\b|\bletters? of the (?:alphabet|printed form)\b`)
