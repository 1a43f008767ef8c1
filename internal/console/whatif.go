// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"net/http"

	"github.com/lullhq/lull/internal/terminal"
)

// Simulator computes the effect of other settings on a load. It is safe for concurrent use.
type Simulator interface {
	// Settings returns the current settings as the text of a lull.yaml.
	Settings() string
	// Compare calls tell for each line of its answer. It also reports faults in the question as
	// lines. An error means that the question cannot be answered now. Compare stops when ctx ends.
	Compare(ctx context.Context, question []byte, tell func(line any)) error
}

// maxQuestion is the size of the largest question of What if, in bytes. A question is JSON with the
// text of the settings, and a load.
const maxQuestion = 256 << 10

// whatifRoutes returns the requests of the view What if.
//
//	GET  /console/whatif                        {"settings": the text of the current settings}
//	POST /console/whatif {"settings", "load"}   lines of JSON, until the comparison or the request ends
func (c *console) whatifRoutes() routes {
	return routes{
		"GET /console/whatif": answered(reader, func(*http.Request) (any, error) {
			return map[string]string{"settings": c.Simulator.Settings()}, nil
		}),
		"POST /console/whatif": c.lines(reader, func(r *http.Request) (longAnswer, error) {
			question, err := body(r, maxQuestion)
			return func(ctx context.Context, say func(any)) {
				if err := c.Simulator.Compare(ctx, question, say); err != nil && !errors.Is(err, context.Canceled) {
					say(map[string]string{"error": terminal.Line(err.Error())})
				}
			}, err
		}),
	}
}
