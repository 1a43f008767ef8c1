// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/shard"
)

// maxContains is how long the text of a filter may be, in bytes.
const maxContains = 1000

// tailRoutes returns the requests of the view of decisions. There are none if the stack keeps no
// decisions.
//
//	GET /console/tail?after=&sink=&collection=&word=&contains=&limit=   the newest decisions, oldest first
func (c *console) tailRoutes() routes {
	if c.Tail == nil {
		return nil
	}
	return routes{"GET /console/tail": answered(reader, func(r *http.Request) (any, error) {
		limit, err := limitOf(r, 500)
		q := operate.TailQuery{
			Sink: r.FormValue("sink"), Collection: shard.Collection(r.FormValue("collection")), Word: r.FormValue("word"),
			Contains: strings.TrimSpace(r.FormValue("contains")), Limit: limit,
		}
		if text := r.FormValue("after"); err == nil && text != "" {
			if q.After, err = strconv.ParseUint(text, 10, 64); err != nil {
				err = badf("after: use the number that the last answer has as next")
			}
		}
		if err == nil && len(q.Contains) > maxContains {
			err = badf("contains: at most %d bytes", maxContains)
		}
		if err != nil {
			return nil, err
		}
		page, err := c.Tail(q)
		if err == nil && q.Word != "" && !slices.Contains(page.Words, q.Word) {
			err = badf("word: use one of %s", strings.Join(page.Words, ", "))
		}
		return page, err
	})}
}
