package infra_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lullhq/lull/infra"
)

// What the page of pipes shows can be deployed.
func TestTheUpstreamsOfThePageAreGood(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lull.yaml")
	const settings = "sinks:\n  search: {kind: opensearch, url: 'https://search.example.org', index: 'lull-{collection}'}\n"
	if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := infra.LoadSettings(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&infra.Props{Config: c, StateOnly: true, Upstreams: upstreams()}).Validate(); err != nil {
		t.Error(err)
	}
}
