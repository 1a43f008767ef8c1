// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/lullhq/lull/internal/deploy/version"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	lull(t, "", "--version").want(t, "--version", exitOK, "lull "+version.Of().String())
	lull(t, "", "version").want(t, "version", exitOK, "lull "+version.Of().String())
	if b := parsed[version.Build](t, lull(t, "", "version", "-o", "json")); b != version.Of() {
		t.Errorf("got %+v, want %+v", b, version.Of())
	}
	lull(t, "", "version", "-o", "yaml").want(t, "another format", exitUsage, "-o yaml")
	lull(t, "", "version", "--aws").want(t, "of a stack", exitUsage, "lull version does not talk to a stack")
}
