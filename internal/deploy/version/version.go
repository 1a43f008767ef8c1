// SPDX-License-Identifier: Apache-2.0

// Package version says which build of lull this is.
//
// A release sets the version and the commit when it links:
//
//	go build -ldflags "-X github.com/lullhq/lull/internal/deploy/version.version=v0.1.0
//	  -X github.com/lullhq/lull/internal/deploy/version.commit=0123abc"
//
// In any other build, the version and the commit come from the build information that the go
// command writes into every binary. So a program built with `go install
// github.com/lullhq/lull/cmd/lull@v0.1.0` knows its version.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// The linker sets version and commit in a release.
var version, commit string

// module is the path of the Go module of lull. A program of another module may depend on this
// module.
const module = "github.com/lullhq/lull"

// Unknown is the version of a build without version information, from a working copy.
const Unknown = "devel"

// Build identifies a build of lull.
type Build struct {
	Version string `json:"version"`           // such as v0.1.0, or devel
	Commit  string `json:"commit,omitempty"`  // the complete hash, or the hash that the linker set; empty if unknown
	Changed bool   `json:"changed,omitempty"` // the working copy had uncommitted changes
	Go      string `json:"go"`                // such as go1.26.8
	OS      string `json:"os"`                // the name that Go uses
	Arch    string `json:"arch"`              // the name that Go uses
}

// Of returns the build of this program.
func Of() Build {
	info, _ := debug.ReadBuildInfo()
	return readBuild(info, version, commit)
}

// readBuild combines the build information of the go command, which may be nil, with the values
// that the linker set.
func readBuild(info *debug.BuildInfo, version, commit string) Build {
	b := Build{Version: version, Commit: commit, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info == nil {
		info = &debug.BuildInfo{}
	}
	// In a program of another module, lull is a dependency, and so the version is in the list of
	// dependencies.
	for _, d := range info.Deps {
		if d.Path == module {
			info = &debug.BuildInfo{Main: *cmp.Or(d.Replace, d)}
		}
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

// shortCommit is the number of characters of a commit hash that String shows.
const shortCommit = 12

// String returns the build as one line of text.
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
