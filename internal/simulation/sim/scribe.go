// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/source"
)

// Scribe writes changes in the formats of the configured sources. A Scribe spreads the documents
// over the sources and their collections.
type Scribe struct {
	config *config.Config
	ways   []feed.Writer
}

// NewScribe finds out how to write each source's format. For each source that it cannot write, the
// error names the setting that prevents it.
func NewScribe(cfg *config.Config, sources *source.Set) (*Scribe, error) {
	ways, why := feed.Writers(cfg, sources, epoch)
	if len(ways) == 0 {
		return nil, fmt.Errorf("no source of the settings decodes events that lull can write: use --events: %w", why)
	}
	return &Scribe{cfg, ways}, nil
}

// Native reports whether the settings decode the plain native events of [Write] and [Load], and
// have no other source.
func (s *Scribe) Native(sources *source.Set) bool {
	m := queue.Message{Body: `{"type":"doc.changed","subject":"a","sequence":"1","data":{}}`, Sent: epoch}
	return len(s.config.Sources) == 1 && len(s.ways) == 1 && !s.ways[0].Refers && sources.Decode(m)[0].Event.Doc != ""
}

// Sources returns the names of the sources in whose formats the scribe writes.
func (s *Scribe) Sources() (names []string) {
	for _, w := range s.ways {
		if !slices.Contains(names, w.Source) {
			names = append(names, w.Source)
		}
	}
	return names
}

// said is a change as a message, with the object to which the message refers.
type said struct {
	feed.Written
	object *Object
}

// write writes a version of the n-th document. If the source's messages cannot express a delete, it
// writes a put instead.
func (s *Scribe) write(n, version int, removed bool, at time.Duration) (said, error) {
	w := s.ways[n%len(s.ways)]
	removed = removed && w.Deletes
	c := source.Change{
		ID: fmt.Sprintf("doc-%d", n), Op: shard.Put, Time: epoch.Add(at),
		Version: source.NumberedVersion(s.config.Sources[w.Source].Class, uint32(version)),
		Data:    fmt.Sprintf(`{"title":"document %d","text":"version %d"}`, n, version),
	}
	if removed {
		c.Op = shard.Delete
	}
	m, err := w.Write(c)
	if err != nil {
		return said{}, err
	}
	p := said{Written: m}
	if w.Refers {
		id := m.Event.Doc.ID()
		p.object = &Object{At: at, Doc: id, Version: version, Removed: removed, Ref: m.Event.DataRef}
		if removed { // a delete has no reference, so the object is that of the puts
			c.Op = shard.Put
			if put, err := w.Write(c); err == nil {
				p.object.Ref = put.Event.DataRef
			}
		}
	}
	return p, nil
}
