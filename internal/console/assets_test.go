// SPDX-License-Identifier: Apache-2.0

package console

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unsafe matches calls that turn a text into markup, a script or a style, and addresses of other
// servers.
var unsafe = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|` +
	`createContextualFragment|DOMParser|\beval\(|new Function|setTimeout\(["'` + "`" + `]|style="|<style|<script>|\bon[a-z]+="|https?://`)

func TestEveryViewIsInTheNavigation(t *testing.T) {
	t.Parallel()
	var files []string
	for _, name := range slices.Sorted(slices.Values(views)) {
		files = append(files, "assets/views/"+name+".js")
	}
	if got, err := fs.Glob(embedded, "assets/views/*"); err != nil || !slices.Equal(got, files) {
		t.Errorf("the files are %q, want %q (%v)", got, files, err)
	}
}

func TestNoFileOfThePageTurnsTextIntoMarkupOrLeavesTheServer(t *testing.T) {
	t.Parallel()
	looked := 0
	err := fs.WalkDir(embedded, "assets", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(embedded, path)
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "//") {
				continue
			}
			if found := unsafe.FindString(strings.ReplaceAll(line, "http://www.w3.org/2000/svg", "")); found != "" {
				t.Errorf("%s:%d: %s", path, i+1, found)
			}
		}
		looked++
		return err
	})
	if err != nil || looked < 5 {
		t.Errorf("looked at %d files: %v", looked, err)
	}
}
