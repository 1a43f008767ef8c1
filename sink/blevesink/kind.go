// SPDX-License-Identifier: Apache-2.0

package blevesink

import (
	"context"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

// Name is the name of this kind of sink in the settings.
const Name = "bleve"

func init() {
	sink.Register(sink.Kind{
		Kind:     setting.Kind{Name: Name, Doc: "A Bleve index in a folder, for one process."},
		InFolder: true,
		Capabilities: func(sink.Settings) sink.Capabilities {
			return sink.Capabilities{Versions: true, Generation: true, AtOnce: true}
		},
		Open: func(_ context.Context, _ sink.Settings, env sink.Environment) (sink.Sink, error) {
			return Open(env.Folder)
		},
	})
}
