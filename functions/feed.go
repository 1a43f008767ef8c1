// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"context"
	"encoding/json"
	"log/slog"

	runtime "github.com/aws/aws-lambda-go/lambda"

	"github.com/lullhq/lull/internal/seam/commitfeed"
)

// Feed runs the function inside the pipe from the table's stream to an event bus. It selects the
// commits among the changes of rows, which an event pattern cannot do. It has no settings and calls
// no service. It does not return.
func Feed() { runtime.Start(commits) }

// commits returns the events for the commits in a batch. If the list is empty, the pipe calls no
// target. After an error, the pipe tries again. A record that cannot be read is logged and skipped.
func commits(_ context.Context, batch json.RawMessage) ([]commitfeed.Event, error) {
	told, err := commitfeed.FromStream(batch)
	if told == nil {
		return nil, err
	}
	if err != nil {
		slog.Error("a change of a row was not published", "error", err.Error())
	}
	return told, nil
}
