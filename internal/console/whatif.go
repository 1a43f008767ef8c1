package console

import (
	"context"
	"errors"
	"net/http"

	"github.com/lullhq/lull/internal/terminal"
)

// Simulator says what other settings would make of a load. It is safe for concurrent use.
type Simulator interface {
	// Settings is the text of the settings that run, as a lull.yaml.
	Settings() string
	// Compare tells its answer line by line. What is wrong with the question is a line too. An error
	// says that the question cannot be answered now. It ends with ctx.
	Compare(ctx context.Context, question []byte, tell func(line any)) error
}

// maxQuestion bounds a question of What if: the settings' text as JSON, and a load.
const maxQuestion = 256 << 10

// GET  /console/whatif   {"settings": the text of the settings that run} POST /console/whatif
// {"settings", "load"}: lines of JSON, until the comparison is done or the request ends
func (c *console) whatifRoutes() routes {
	return routes{
		"GET /console/whatif": answered(reader, func(*http.Request) (any, error) {
			return map[string]string{"settings": c.Simulator.Settings()}, nil
		}),
		"POST /console/whatif": c.lines(reader, func(r *http.Request) (long, error) {
			question, err := body(r, maxQuestion)
			return func(ctx context.Context, say func(any)) {
				if err := c.Simulator.Compare(ctx, question, say); err != nil && !errors.Is(err, context.Canceled) {
					say(map[string]string{"error": terminal.Line(err.Error())})
				}
			}, err
		}),
	}
}
