// Package release names the files of a release, and fetches the functions' programs from one.
//
// What it promises:
//
//   - Nothing is used whose SHA-256 is not the one that the release says. For the release that this
//     program is of, the sums are part of the program. For another, the caller gives the sum of the
//     file SHA256SUMS.
//   - A zip is stored whole or not at all, and read from the user's cache folder the next time.
//   - What is downloaded is bounded, in bytes and in time.
package release

import (
	"regexp"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/names"
	"github.com/lullhq/lull/internal/version"
)

// Base is the address of the releases. Below it each has a folder with its version's name.
const Base = "https://github.com/lullhq/lull/releases/download"

// SumsFile is the name of the file with the sums of all others, as sha256sum writes it.
const SumsFile = "SHA256SUMS"

// Program is the name of a function's program, in its zip and in a folder of builds.
const Program = "bootstrap"

// sums are the sums of the zips that this program's release holds, as NAME=SUM, parted by commas.
// The linker sets them.
var sums string

// Own is the version of the release that this program is of, if it knows its sums; otherwise empty.
func Own() string {
	if sums == "" {
		return ""
	}
	return version.Of().Version
}

// Link is what the linker sets so that a program knows the sums of its release.
func Link(of map[string]string) string {
	var pairs []string
	for name, sum := range of {
		pairs = append(pairs, name+"="+sum)
	}
	slices.Sort(pairs)
	return "github.com/lullhq/lull/internal/release.sums=" + strings.Join(pairs, ",")
}

// Zip is the name of a program's zip for an architecture of Lambda: arm64 or x86_64.
func Zip(version string, p names.Program, arch string) string {
	return "lull-" + p.File() + "_" + version + "_" + arch + ".zip"
}

var versions = regexp.MustCompile(
	`^v(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})(-[0-9A-Za-z][0-9A-Za-z.-]{0,40})?$`)

// IsVersion reports whether a text is the version of a release, such as v0.1.0 or v0.2.0-rc.1.
func IsVersion(text string) bool { return versions.MatchString(text) }

// IsCandidate reports whether a version comes before a release, such as v0.2.0-rc.1.
func IsCandidate(version string) bool { return strings.Contains(version, "-") }
