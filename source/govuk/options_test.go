// SPDX-License-Identifier: Apache-2.0

package govuk

import (
	"reflect"
	"testing"
)

// If options are written and read again, a nil list becomes the default list. So a nil list must
// also mean the default list before that.
func TestNilListsAreTheDefaultsAndEmptyOnesAreNot(t *testing.T) {
	t.Parallel()
	if got := (Lists{}).complete(); !reflect.DeepEqual(got, defaults.Govuk) {
		t.Errorf("got %+v, want the defaults", got)
	}
	none := []string{}
	empty := Lists{IgnoreTypes: none, IgnorePrefixes: none, OverridePaths: none, Locales: []string{"cy"}}
	if got := empty.complete(); !reflect.DeepEqual(got, empty) {
		t.Errorf("got %+v, want %+v", got, empty)
	}
}
