// Package version says which build of lull this is.
//
// A release sets the version and the commit when it links:
//
//	go build -ldflags "-X github.com/lullhq/lull/internal/version.version=v0.1.0
//	  -X github.com/lullhq/lull/internal/version.commit=0123abc"
//
// Otherwise both come from what the go command writes into every binary: `go install
// github.com/lullhq/lull/cmd/lull@v0.1.0` knows its version without them.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// What a release sets when it links.
var version, commit string

// Unknown is the version of a build from a working copy that carries no information about it.
const Unknown = "devel"

// Build is which build of lull this is.
type Build struct {
	Version string `json:"version"`           // such as v0.1.0, or devel
	Commit  string `json:"commit,omitempty"`  // whole, or as the release says it; empty where unknown
	Changed bool   `json:"changed,omitempty"` // built from a working copy with changes of its own
	Go      string `json:"go"`                // such as go1.26.8
	OS      string `json:"os"`                // as Go names it
	Arch    string `json:"arch"`              // as Go names it
}

// Of returns this program's build.
func Of() Build {
	info, _ := debug.ReadBuildInfo()
	return of(info, version, commit)
}

// of reads a build from what the go command wrote, which may be nothing, and from what the release
// set.
func of(info *debug.BuildInfo, version, commit string) Build {
	b := Build{Version: version, Commit: commit, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info == nil {
		info = &debug.BuildInfo{}
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = cmp.Or(b.Commit, s.Value)
		case "vcs.modified":
			b.Changed = s.Value == "true" && version == ""
		}
	}
	if b.Version == "" && info.Main.Version != "(devel)" {
		b.Version = info.Main.Version
	}
	b.Version = cmp.Or(b.Version, Unknown)
	return b
}

// shortCommit is how much of a commit String shows.
const shortCommit = 12

// String is the build in one line.
func (b Build) String() string {
	parts := []string{}
	if b.Commit != "" {
		text := "commit " + b.Commit[:min(len(b.Commit), shortCommit)]
		if b.Changed {
			text += " with changes"
		}
		parts = append(parts, text)
	}
	parts = append(parts, b.Go, b.OS+"/"+b.Arch)
	return fmt.Sprintf("%s (%s)", b.Version, strings.Join(parts, ", "))
}
