// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/simulation/price"
)

// idleRun is how long an invocation of job lasts if no verification is due.
const idleRun = 200 * time.Millisecond

// verified returns the monthly cost of the verifications that find nothing to repair. The documents
// are assumed to be spread evenly over the collections.
func verified(c *config.Config, load Load) []price.Item {
	every, asked := c.Works()[config.WorkVerify]
	if !asked {
		return nil
	}
	documents := float64(load.Documents) / float64(len(c.Collections))
	var lasts, scanned, read float64 // seconds, and read units
	for _, name := range c.Verified() {
		v, sinks := c.Collections[name].Verify, float64(len(c.SinksFor(name)))
		times := float64(month) / float64(v.Every) * sinks
		// A verification that takes longer than its interval is followed by the next at once.
		lasts += min(documents/float64(v.Requests)*times, month.Seconds()*sinks)
		scanned += float64(load.Documents) * rowBytes / (8 << 10) * times // the whole table, as prune does
		read += documents * price.ReadUnits(rowBytes, true) * times
	}
	l, runs := price.USEast1, float64(month)/float64(every)
	gigabytes := float64(names.Job.MegabytesIn(c)) / 1024
	return []price.Item{
		price.NewItem("Verification", "invocations of job", runs, l.Invocations, million),
		price.NewItem("Verification", "GB-seconds of job", (lasts+runs*idleRun.Seconds())*gigabytes,
			million*l.LambdaGBSecond, million),
		price.NewItem("Verification", "read units", scanned+read, l.ReadUnits, million),
	}
}
