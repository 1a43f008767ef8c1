// Package release names the files of a release, and downloads the functions' programs.
//
// It promises:
//
//   - It only uses a file whose SHA-256 is the one that the release says. A program knows the sums
//     of its own release. For another release, the caller gives the sum of the file SHA256SUMS.
//   - A zip is stored whole or not at all in the user's cache folder, and read from there the next
//     time.
//   - Downloads are bounded in bytes and in time.
package release

import (
	"regexp"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/version"
)

// Base is the address of the releases. Each version has a folder below it.
const Base = "https://github.com/lullhq/lull/releases/download"

// SumsFile is the name of the file with the sums of all other files, in the format of sha256sum.
const SumsFile = "SHA256SUMS"

// Program is the name of a function's program, in its zip and in a folder of builds.
const Program = "bootstrap"

// sums are the sums of the zips of this program's release, as NAME=SUM, separated by commas. The
// linker sets them.
var sums string

// Own is the version of the release that this program belongs to, or empty if its sums are unknown.
func Own() string {
	if sums == "" {
		return ""
	}
	return version.Of().Version
}

// Link returns the linker's setting with which a program knows the sums of its release.
func Link(of map[string]string) string {
	var pairs []string
	for name, sum := range of {
		pairs = append(pairs, name+"="+sum)
	}
	slices.Sort(pairs)
	return "github.com/lullhq/lull/internal/deploy/release.sums=" + strings.Join(pairs, ",")
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
