// SPDX-License-Identifier: Apache-2.0

package config

import "time"

// Work is the name of a work that the function job does by a schedule.
type Work string

// The works.
const (
	WorkCanary Work = "canary" // sends the canary's document through the sinks
	WorkVerify Work = "verify" // carries on the verifications that are due
)

// verifyEvery is how often the verifications are carried on. A verification is a job, and each run
// does a portion of it.
const verifyEvery = 5 * time.Minute

// Works returns the interval of each work that the settings ask for, in whole minutes. If it is
// empty, the stack has no function job.
func (c *Config) Works() map[Work]time.Duration {
	all := map[Work]time.Duration{}
	if c.Canary.Every > 0 {
		all[WorkCanary] = c.Canary.Every
	}
	if len(c.Verified()) > 0 {
		all[WorkVerify] = verifyEvery
	}
	return all
}
