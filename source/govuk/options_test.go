package govuk

import (
	"reflect"
	"testing"
)

// What is written out and read back has the defaults for what was nil. So nil means them before,
// too.
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
