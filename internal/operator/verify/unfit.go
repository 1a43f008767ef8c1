// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/operator/export"
	"github.com/lullhq/lull/internal/pipeline/reconcile"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/shard"
	formats "github.com/lullhq/lull/source"
)

// MaxScheduled is how many verifications a stack can have, one for each sink of a verified
// collection. The list of jobs has 50, and must have room for those of operators and the canary.
const MaxScheduled = 30

// Count returns how many verifications the settings schedule.
func Count(c *config.Config) (n int) {
	for _, name := range c.Verified() {
		n += len(c.SinksFor(name))
	}
	return n
}

// Unfit says, for each verified collection whose documents no message of its source can name, why
// none can. Such a difference could not be repaired. Unfit reads only the settings.
func Unfit(c *config.Config) (map[string]string, error) {
	sources, err := formats.New(c)
	if err != nil {
		return nil, err
	}
	unfit := map[string]string{}
	for _, name := range c.Verified() {
		from := c.Writers(name)
		if len(from) != 1 {
			continue // the settings are refused for this
		}
		for _, sink := range c.SinksFor(name) {
			a := export.Asker{
				Looker:  reconcile.Looker{Config: c, Clock: clock.System{}},
				Sources: sources.At(sink), Collection: shard.Collection(name), Source: from[0],
			}
			if err := a.Writes(); err != nil {
				unfit[name] = err.Error()
			}
		}
	}
	return unfit, nil
}
