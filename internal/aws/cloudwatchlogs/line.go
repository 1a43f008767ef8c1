// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/journal"
	"github.com/lullhq/lull/internal/shard"
)

// line contains the fields of a log line that describe a decision. Package internal/aws/decisionlog
// writes these lines.
type line struct {
	Timestamp time.Time   `json:"timestamp"`
	Step      string      `json:"msg"`
	Function  string      `json:"function"`
	Doc       shard.DocID `json:"doc"`
	Lane      string      `json:"lane"`
	Version   string      `json:"version"`
	Op        string      `json:"op"`
	Flight    string      `json:"flight"`
	Message   string      `json:"message"`
	Letter    string      `json:"dead_letter"`
	Until     time.Time   `json:"until"`
	Detail    string      `json:"detail"`
}

// decision parses a log line. The function returns false if the line is not a decision about the
// document. at is the time when CloudWatch received the line, for a line without a time.
func decision(text string, doc shard.DocID, at time.Time) (operate.Decision, bool) {
	var l line
	if err := json.Unmarshal([]byte(text), &l); err != nil || l.Doc != doc || l.Step == "" {
		return operate.Decision{}, false
	}
	if l.Timestamp.IsZero() {
		l.Timestamp = at
	}
	words := []string{l.Function}
	for _, w := range []struct{ name, value string }{
		{"", l.Lane},
		{"", l.Op},
		{"version ", readable(l.Version)},
		{"flight ", l.Flight},
		{"message ", l.Message},
		{"dead letter ", l.Letter},
		{"", l.Detail},
	} {
		if w.value != "" {
			words = append(words, w.name+w.value)
		}
	}
	if !l.Until.IsZero() {
		words = append(words, "until "+l.Until.UTC().Format(time.RFC3339))
	}
	return operate.Decision{
		At: l.Timestamp.UTC(), Step: l.Step, Text: strings.Join(words, ", "), Decided: journal.Step(l.Step),
		Version: readable(l.Version), Message: l.Message, Until: l.Until,
	}, true
}

// readable returns the upstream's version in a printed order key. The function returns any other
// text unchanged.
func readable(key string) string {
	k, err := shard.ParseOrderKey(key)
	if err != nil {
		return key
	}
	return cmp.Or(k.VersionText(), key)
}
