// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lullhq/lull/internal/aws/dynamodb"
	"github.com/lullhq/lull/internal/aws/sqs"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/operator/operate"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/queue"
	"github.com/lullhq/lull/internal/terminal"
)

// otherParts reaches the stacks of the other parts, in the same account and region. It makes the
// clients of a part when it is used first, because most commands need none of them.
func otherParts(a aws.Config, cfg *config.Config) func(part int) operate.Other {
	if !cfg.Parts.Spread() {
		return nil
	}
	client := awssqs.NewFromConfig(a)
	others := make([]func() operate.Other, cfg.Parts.Of)
	for i := range others {
		others[i] = sync.OnceValue(func() operate.Other { return otherPart(a, client, cfg.InPart(i+1)) })
	}
	return func(part int) operate.Other { return others[part-1]() }
}

// otherPart reaches the stack with these settings. It looks for a queue when it is used first.
func otherPart(a aws.Config, client *awssqs.Client, other *config.Config) operate.Other {
	var mu sync.Mutex
	n, found := names.Of(other), map[string]queue.Queue{}
	return operate.Other{
		Shards: dynamodb.New(a, n.Table()),
		Queue: func(ctx context.Context, sink string, lane flight.Lane) (queue.Queue, error) {
			mu.Lock()
			defer mu.Unlock()
			name := n.Queue(sink, lane)
			if q, ok := found[name]; ok {
				return q, nil
			}
			url, err := queueURL(ctx, client, other, name)
			if err != nil {
				return nil, err
			}
			found[name] = sqs.New(a, url)
			return found[name], nil
		},
	}
}

// addParts adds the counts of messages by part.
func addParts(total, more map[int]int) map[int]int {
	if total == nil {
		return maps.Clone(more)
	}
	for part, n := range more {
		total[part] += n
	}
	return total
}

// printParts prints how many messages each part got; nothing if there is only one part.
func printParts(w io.Writer, parts map[int]int) {
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		terminal.Printf(w, "part %d: %d messages\n", part, parts[part])
	}
}
