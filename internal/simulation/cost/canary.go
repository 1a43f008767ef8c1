// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"context"
	"math"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/operator/roundtrip"
	"github.com/lullhq/lull/internal/simulation/price"
)

// lone is a load of single events, far apart.
var lone = Load{Rate: 1.0 / 120, Burst: 1, Hours: 24, Bytes: minBytes, Most: 60}

// canary returns the monthly cost of the canary. The metrics of its alarms are among those of the
// stack.
func canary(ctx context.Context, c *config.Config, idle measured) ([]price.Item, error) {
	if c.Canary.Every == 0 {
		return nil, nil
	}
	m, err := run(ctx, c, lone.upstream(), FewestPollers, 0)
	if err != nil {
		return nil, err
	}
	sinks, l := float64(len(c.Canaries())), price.USEast1
	prunes := float64(m.counts.Invocations["prune"]) / float64(len(c.Sinks))
	event := l.Dollars(m.usage.Plus(idle.usage.Times(-prunes))) / float64(m.counts.Events) * million
	runs := float64(month / c.Canary.Every)
	// A round trip waits for two writes, one after the other.
	lasts := min(2*c.Fresh(c.DefaultCollection)+time.Second, roundtrip.Budget)
	saved := price.WriteUnits(roundtrip.StateBytes) * roundtrip.Saves
	read := price.ReadUnits(rowBytes, true) * roundtrip.Reads
	hours := min(1, float64(time.Hour)/float64(c.Canary.Every)) // in which its metrics get a value
	return []price.Item{
		price.NewItem("Canary", "its events, from the queue to the sink", 2*runs*sinks, math.Round(event*100)/100, million),
		price.NewItem("Canary", "invocations of job", runs, l.Invocations, million),
		price.NewItem("Canary", "GB-seconds of job", runs*price.LambdaGBSeconds(lasts, names.Job.MegabytesIn(c)),
			million*l.LambdaGBSecond, million),
		price.NewItem("Canary", "write units of its progress", runs*sinks*saved, l.WriteUnits, million),
		price.NewItem("Canary", "read units", runs*sinks*read, l.ReadUnits, million),
		price.NewItem("Canary", "custom metrics", 2*sinks*hours, l.Metric, 1),
	}, nil
}

const million = 1e6
