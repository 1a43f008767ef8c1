// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/deploy/release"
)

// Each sink gets the program that links its kind. A custom program serves every kind that has no
// program. If both exist for one kind, Validate reports a fault.
func TestASinkHasTheProgramOfItsKind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		there  []string // files below AssetDir
		shelf  string   // the program for the sink of kind shelf
		search string   // the program for the sink of kind opensearch
		says   string   // the fault, if there is one
	}{
		"each its own": {
			there: []string{"index/opensearch", "index/shelf"}, search: "index/opensearch", shelf: "index/shelf",
		},
		"one program for all":   {there: []string{"index"}, search: "index", shelf: "index"},
		"one program for both":  {there: []string{"index", "index/opensearch"}, says: "index/opensearch/bootstrap): and index/bootstrap are both there: delete"},
		"none for one of them":  {there: []string{"index/opensearch"}, says: "index/shelf/bootstrap): does not exist: run make build"},
		"none for all of them":  {says: "a program of yours that links the kind is index/bootstrap there"},
		"another kind's beside": {there: []string{"index/opensearch", "index/shelf", "index/vault"}, search: "index/opensearch", shelf: "index/shelf"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Props{Config: deployable("lull"), AssetDir: t.TempDir(), Ephemeral: true}
			p.Config.Sinks["more"] = config.Sink{Kind: "shelf", URL: "https://shelf.example.org", Index: "news"}
			for _, folder := range append(tt.there, "receive", "prune", "dlq") {
				if err := writeProgram(filepath.Join(p.AssetDir, folder, release.Program), folder); err != nil {
					t.Fatal(err)
				}
			}
			var fs faultList
			p.checkAssets(&fs)
			err := errors.Join(fs...)
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("got %v, want %q", err, tt.says)
			}
			if err != nil {
				return
			}
			dir, err := stage(p)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = os.RemoveAll(dir) }()
			for kind, want := range map[string]string{"opensearch": tt.search, "shelf": tt.shelf} {
				folder := filepath.Join(dir, Index.Program(kind).File())
				program, err := os.ReadFile(filepath.Join(folder, release.Program))
				if err != nil || string(program[min(64, len(program)):]) != want {
					t.Errorf("%s: got the program %q, want %q: %v", kind, program, want, err)
				}
				if files, err := os.ReadDir(folder); err != nil || len(files) != 2 {
					t.Errorf("%s: got %v in one asset: %v", kind, files, err)
				}
			}
		})
	}
}
