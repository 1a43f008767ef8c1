// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"fmt"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/shard"
)

// evidence returns what the settings say about a row.
func (o *layout) evidence(key shard.DocID) evidence {
	name := o.Config.SinkOf(key)
	return evidence{
		timing: o.Config.Timing(key.Collection()), visibility: o.Config.Queues.Visibility, collection: key.Collection(),
		patience: o.Config.Lease(name) + 2*time.Second, ceiling: config.Ceiling(o.Config.Sinks[name]),
	}
}

// farAhead says why a committed version is so high that every later version is stale; empty if it
// is not. It takes the widest bounds of all sources, because a row does not say which source an
// event came from.
func (o *layout) farAhead(k shard.OrderKey, now time.Time) string {
	p, err := k.Parts()
	if err != nil {
		return ""
	}
	switch began := p.Run.Time(); {
	case p.Version.Class() == shard.ClassTime && o.inFuture(p.Version, now):
		return "it is a time that has not come"
	case p.Run != (shard.Run{}) && began.After(now.Add(time.Hour)):
		return fmt.Sprintf("its resync run is to begin at %s", began.UTC().Format(time.RFC3339))
	case o.aboveAll(p.Version):
		return "it is above maxVersion of every source of its class"
	case p.Version.Class() == shard.ClassInt && !o.longVersions() && len(p.Version.Text()) > maxDigits:
		return fmt.Sprintf("it has %d digits", len(p.Version.Text()))
	}
	return ""
}

// inFuture reports whether a version is a time that no source may send yet.
func (o *layout) inFuture(v shard.Version, now time.Time) bool {
	var ahead time.Duration
	for _, s := range o.Config.Sources {
		ahead = max(ahead, s.MaxAhead)
	}
	latest, err := shard.TimeVersion(now.Add(ahead))
	return err == nil && v.Compare(latest) > 0
}

// aboveAll reports whether a version is above maxVersion of every source that has its class.
func (o *layout) aboveAll(v shard.Version) bool {
	of, above := 0, 0
	for _, s := range o.Config.Sources {
		if string(s.Class) != v.Class().String() {
			continue
		}
		of++
		if greatest, err := shard.ParseVersion(v.Class(), s.MaxVersion); err == nil && v.Compare(greatest) > 0 {
			above++
		}
	}
	return of > 0 && above == of
}

// longVersions reports whether a source has versions of more than maxDigits: the sequence numbers
// of DynamoDB Streams have 21 to 40 digits, and the positions that Debezium sends have at least 21.
func (o *layout) longVersions() bool {
	for _, s := range o.Config.Sources {
		if s.Kind == "dynamodb-stream" || s.Kind == "debezium" {
			return true
		}
	}
	return false
}

// maxDigits is the number of digits of the greatest counter with 64 bits.
const maxDigits = 20
