// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var templates = flag.String("templates", "", "write the templates of all test stacks into this folder")

// The test stacks have roles that no other template has, such as the roles of pipes. With these
// templates, make lint-template checks each role against AWS's list of actions and resources.
func TestWriteTemplates(t *testing.T) {
	if *templates == "" {
		t.Skip("make lint-template runs it with -templates")
	}
	stackOf(t, fullStack)
	found, err := filepath.Glob(filepath.Join(folder, "*", "*.template.json"))
	if err != nil || len(found) <= len(states) {
		t.Fatalf("got templates %v: %v", found, err)
	}
	if err := os.MkdirAll(*templates, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(path)) + "-" + filepath.Base(path)
		if err := os.WriteFile(filepath.Join(*templates, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
