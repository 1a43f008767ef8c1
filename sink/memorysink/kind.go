package memory

import (
	"context"

	"github.com/lullhq/lull/internal/clock"
	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

func init() {
	sink.Register(sink.Kind{
		Kind: setting.Kind{Name: "memory", Doc: "Documents in memory, for one process."},
		Capabilities: func(sink.Settings) sink.Capabilities {
			return sink.Capabilities{Versions: true, Generation: true}
		},
		Open: func(_ context.Context, s sink.Settings, _ sink.Environment) (sink.Sink, error) {
			return NewSink(clock.System{}, SinkSettings{Versions: s.Capabilities().Versions}), nil
		},
	})
}
