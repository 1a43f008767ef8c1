// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"slices"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/operator/roundtrip"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/shard"
)

// writeRows returns the right to write rows, for a function that may write only the rows of its own
// sink (ADR 0064). The key of a document's row begins with the collection. If the sink is not the
// first one of the collection, the key also contains the sink. Reads have no such condition: IAM
// denies a whole batch because of one key, and dlq reads rows of documents whose message was in the
// wrong queue.
func (s *Sink) writeRows(f names.Function) right {
	r := s.lull.table("WriteRows", "dynamodb:UpdateItem")
	r.only = map[string]any{}
	for operator, keys := range s.rowKeys(f) {
		r.only[operator] = keys
	}
	return r
}

// rowKeys returns the condition of writeRows.
func (s *Sink) rowKeys(f names.Function) map[string]map[string][]string {
	operator, keys := "ForAllValues:StringLike", slices.Concat(s.documents(), s.ownRows(f))
	if s.Name == s.lull.props.Config.DefaultSink {
		// The default sink also gets the collections that the settings do not list.
		operator, keys = "ForAllValues:StringNotLike", s.foreignRows(f)
	}
	return map[string]map[string][]string{operator: {"dynamodb:LeadingKeys": keys}}
}

// rowKeysSize returns how many characters the patterns of writeRows have in the policy of index.
func (p *Props) rowKeysSize(sink string) (size int) {
	for _, on := range (&Sink{Name: sink, lull: &Lull{props: p}}).rowKeys(names.Index) {
		for _, keys := range on {
			for _, key := range keys {
				size += len(key) + len(`"",`)
			}
		}
	}
	return size
}

// documents returns the patterns for the keys of the sink's documents.
func (s *Sink) documents() (keys []string) {
	c := s.lull.props.Config
	for _, collection := range sortedKeys(c.Collections) {
		// The pattern matches every document of the collection: the star matches the id.
		any := shard.DocID(collection + "#*")
		if row, ok := c.RowAt(any, s.Name); ok {
			keys = append(keys, string(row))
		}
	}
	return keys
}

// The prefixes and patterns of the keys of rows that are not documents.
const (
	healthRows  = "!health#"
	objectRows  = "!object#"
	runRows     = "!run#"
	schedRows   = "!sched#*"
	deadRows    = "!dead#*"
	messageRows = "!message#*"
)

// ownRows returns patterns for the keys of lull's own rows that the function writes. The keys of
// dead letters, of their messages and of scheduled events do not contain the sink.
func (s *Sink) ownRows(f names.Function) []string {
	switch f {
	case names.Receive:
		return []string{objectRows + s.Name + "#*", schedRows}
	case names.Index:
		keys := []string{string(shard.HealthRow(s.Name))}
		for _, c := range s.lull.props.Config.Enriched(s.Name) {
			keys = append(keys, string(shard.HealthRow(enrich.HealthName(c))))
		}
		return keys
	case names.DLQ:
		return []string{deadRows, messageRows}
	}
	return nil
}

// jobKeys returns the condition of a right that is limited to the rows of jobs.
func jobKeys() map[string]map[string][]string {
	return map[string]map[string][]string{"ForAllValues:StringLike": {"dynamodb:LeadingKeys": {
		string(shard.RunRow("job-*")), string(shard.RunRow("jobs")),
	}}}
}

// canaryKeys returns patterns for the keys of the rows that the canary reads.
func canaryKeys() []string {
	return []string{
		"*#" + roundtrip.Document + "*", healthRows + "*", string(shard.RunRow("job-*")), string(shard.RunRow("jobs")),
	}
}

// foreignRows returns patterns for the keys that the function must not write: the keys of other
// sinks' rows, and of lull's own rows that the function does not write.
func (s *Sink) foreignRows(f names.Function) []string {
	keys := map[names.Function][]string{
		names.Receive: {deadRows, healthRows + "*", messageRows, runRows + "*"},
		names.Index:   {deadRows, messageRows, objectRows + "*", runRows + "*", schedRows},
		names.DLQ:     {healthRows + "*", objectRows + "*", runRows + "*", schedRows},
	}[f]
	own := s.ownRows(f)
	for _, name := range sinkNames(s.lull.props.Config) {
		if other := (&Sink{Name: name, lull: s.lull}); name != s.Name {
			keys = slices.Concat(keys, other.documents(), other.ownRows(f))
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(own, key) })
}
