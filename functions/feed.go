package functions

import (
	"context"
	"encoding/json"
	"log/slog"

	runtime "github.com/aws/aws-lambda-go/lambda"

	"github.com/lullhq/lull/internal/commitfeed"
)

// Feed runs the function inside the pipe from the table's stream to a bus: it turns the changes of
// rows into the commits among them, which no pattern can tell. It has no settings and calls nobody.
// It does not return.
func Feed() { runtime.Start(commits) }

// commits answers with the events of a batch. An empty list ends the batch: the pipe then calls no
// target. An error has the pipe try again; a record that cannot be read is logged, and passed over.
func commits(_ context.Context, batch json.RawMessage) ([]commitfeed.Event, error) {
	told, err := commitfeed.FromStream(batch)
	if told == nil {
		return nil, err
	}
	if err != nil {
		slog.Error("a change of a row is not told", "error", err.Error())
	}
	return told, nil
}
