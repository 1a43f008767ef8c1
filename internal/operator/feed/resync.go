// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/source"
)

// Resync makes a message part of a resync run. If collection is not empty, it also moves the events
// to that collection.
func Resync(cfg *config.Config, sources *source.Set, m queue.Message, run event.Run, collection string) (
	queue.Message, error,
) {
	at := RouteOf(cfg, sources, m).Sink
	if collection != "" && !sources.BySink() {
		at = cfg.SinksFor(collection)[0]
	}
	return sources.At(at).Resync(m, run, collection)
}
