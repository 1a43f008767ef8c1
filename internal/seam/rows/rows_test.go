// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
	"testing"

	"github.com/lullhq/lull/internal/seam/rows"
	"github.com/lullhq/lull/internal/shard"
)

// If two leases had one token, each owner would take the other's work for its own.
func TestTokensAreFresh(t *testing.T) {
	t.Parallel()
	seen := map[shard.Token]bool{}
	for range 1000 {
		seen[rows.NewToken()] = true
	}
	if len(seen) != 1000 {
		t.Errorf("got %d tokens of 1000", len(seen))
	}
}
