// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lullhq/lull/internal/operator/feed"
	"github.com/lullhq/lull/internal/operator/job"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/shard"
)

// countPart is the prefix of a job's counts of messages by part.
const countPart = "part "

// countParts counts the messages of a job's step by part.
func countParts[L any](s *job.Step[L], parts map[int]int) {
	for part, n := range parts {
		s.Count(countPart+strconv.Itoa(part), n)
	}
}

// PartsOf returns how many messages a job sent to each part. It is nil if the stack has all
// documents.
func PartsOf(s job.State) (parts map[int]int) {
	for name, n := range s.Counts {
		part, err := strconv.Atoi(strings.TrimPrefix(name, countPart))
		if err != nil || !strings.HasPrefix(name, countPart) {
			continue
		}
		if parts == nil {
			parts = map[int]int{}
		}
		parts[part] = n
	}
	return parts
}

// spread returns the number of parts, or 0 if the stack has all documents.
func (o *Operator) spread() int {
	if !o.Config.Parts.Spread() {
		return 0
	}
	return o.Config.Parts.Of
}

// Spread returns the number of parts that the documents are spread over, or 0 if that is one or
// unknown.
func (api *API) Spread() int {
	if api.Parts == nil {
		return 0
	}
	return api.Parts()
}

// Other is what a sender needs of the stack of another part.
type Other struct {
	Shards shard.Store
	// Queue finds an ingest queue. An error names the queue.
	Queue func(ctx context.Context, sink string, lane flight.Lane) (queue.Queue, error)
}

// rowsOf returns the rows of another part, or nil if this program does not reach its stack.
func (o *sender) rowsOf(part int) shard.Store {
	if o.Others == nil {
		return nil
	}
	return o.Others(part).Shards
}

// reachesPart refuses a message whose documents are of several parts, or of a part whose stack this
// program does not reach.
func (o *publisher) reachesPart(to feed.Route) error {
	if to.Split != nil || o.own(to.Part) || o.Others != nil {
		return to.Split
	}
	return fmt.Errorf("it is of part %d of %d, and this is stack %s of part %d", to.Part, o.Config.Parts.Of,
		o.Config.Stack, max(o.Part, 1))
}

// sentTo counts a message that was sent to a part.
func (o *publisher) sentTo(done *Published, part int) {
	if !o.Config.Parts.Spread() {
		return
	}
	if done.Parts == nil {
		done.Parts = map[int]int{}
	}
	done.Parts[part]++
}

// sendOther sends to a queue in the stack of another part. Its errors name the part.
func (o *sender) sendOther(ctx context.Context, part int, sink string, lane flight.Lane, out []queue.Outgoing) []error {
	q, err := o.Others(part).Queue(ctx, sink, lane)
	if err != nil {
		return queue.FailAll(len(out), fmt.Errorf("part %d: %w", part, err))
	}
	errs := q.Send(ctx, out)
	for i, err := range errs {
		if err != nil {
			errs[i] = fmt.Errorf("part %d: %w", part, err)
		}
	}
	return errs
}

// own reports whether a part is that of this stack. A stack that has all documents is part 1.
func (o *sender) own(part int) bool { return part == max(o.Part, 1) }
