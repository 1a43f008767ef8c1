// SPDX-License-Identifier: Apache-2.0

package memorysink

import (
	"context"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

func init() {
	sink.Register(sink.Kind{
		Kind: setting.Kind{Name: "memory", Doc: "Documents in memory, for one process."},
		Capabilities: func(sink.Settings) sink.Capabilities {
			return sink.Capabilities{Versions: true, Generation: true, AtOnce: true}
		},
		Open: func(_ context.Context, s sink.Settings, _ sink.Environment) (sink.Sink, error) {
			return New(clock.System{}, Settings{Versions: s.Capabilities().Versions}), nil
		},
	})
}
