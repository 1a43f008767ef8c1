package infra

import (
	"slices"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/pipeline/enrich"
	"github.com/lullhq/lull/internal/shard"
)

// writeRows is the right to write rows, for a function that writes those of its own sink only
// (ADR 0064). The keys of documents begin with the collection, and with the sink where that is not
// the collection's first one. Reads carry no such condition: IAM denies a whole batch for one key,
// and dlq reads the rows of documents that came to the wrong queue.
func (s *Sink) writeRows(f names.Function) right {
	r := s.lull.table("WriteRows", "dynamodb:UpdateItem")
	r.only = map[string]any{}
	for operator, keys := range s.rowKeys(f) {
		r.only[operator] = keys
	}
	return r
}

// rowKeys is the condition of writeRows.
func (s *Sink) rowKeys(f names.Function) map[string]map[string][]string {
	operator, keys := "ForAllValues:StringLike", slices.Concat(s.documents(), s.ownRows(f))
	if s.Name == s.lull.props.Config.DefaultSink {
		// It also gets the collections that the settings do not name.
		operator, keys = "ForAllValues:StringNotLike", s.foreignRows(f)
	}
	return map[string]map[string][]string{operator: {"dynamodb:LeadingKeys": keys}}
}

// rowKeysSize is how many characters the patterns of writeRows have in index's policy.
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

// documents are the patterns of the keys of the sink's documents.
func (s *Sink) documents() (keys []string) {
	c := s.lull.props.Config
	for _, collection := range sortedKeys(c.Collections) {
		// A document of the collection. Its id begins where the pattern's star is.
		any := shard.DocID(collection + "#*")
		if row, ok := c.RowAt(any, s.Name); ok {
			keys = append(keys, string(row))
		}
	}
	return keys
}

// What lull's own rows begin with.
const (
	healthRows  = "!health#"
	objectRows  = "!object#"
	runRows     = "!run#"
	schedRows   = "!sched#*"
	deadRows    = "!dead#*"
	messageRows = "!message#*"
)

// ownRows are the patterns of the keys of lull's own rows that the function writes. The ids of dead
// letters, of their messages and of scheduled events carry no sink.
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

// jobKeys is the condition of a right on the rows of jobs only.
func jobKeys() map[string]map[string][]string {
	return map[string]map[string][]string{"ForAllValues:StringLike": {"dynamodb:LeadingKeys": {
		string(shard.RunRow("job-*")), string(shard.RunRow("jobs")),
	}}}
}

// foreignRows are the patterns of all other keys: those of the other sinks, and the rows of lull's
// own that the function does not write.
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
