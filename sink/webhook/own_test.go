// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"testing"

	"github.com/lullhq/lull/sink/sinktest"
)

func TestTheUsersOwnStays(t *testing.T) {
	t.Parallel()
	table := map[sinktest.Place]sinktest.Owned{}
	for _, place := range sinktest.Places() {
		table[place] = sinktest.Owned{None: "the receiver is the user's own program: lull sends it documents and makes nothing there"}
	}
	table[sinktest.ReadOnly] = sinktest.Owned{None: "the table of answers has it: HTTP 403 is a fault of configuration"}
	sinktest.Own(t, "webhook", table)
}
