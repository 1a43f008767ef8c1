// SPDX-License-Identifier: Apache-2.0

package vertex_test

import (
	"testing"

	"github.com/lullhq/lull/sink/sinktest"
)

func TestTheUsersOwnStays(t *testing.T) {
	t.Parallel()
	table := map[sinktest.Place]sinktest.Owned{}
	for _, place := range sinktest.Places() {
		table[place] = sinktest.Owned{None: "the user makes every data store: lull writes documents into it and makes nothing else"}
	}
	table[sinktest.ReadOnly] = sinktest.Owned{None: "the table of answers has it: HTTP 403 is a fault of configuration"}
	sinktest.Own(t, "vertex", table)
}
