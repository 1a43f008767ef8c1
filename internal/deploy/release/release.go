// SPDX-License-Identifier: Apache-2.0

// Package release names the files of a release, and downloads the programs of the Lambda functions.
//
// The package promises:
//
//   - The package only uses a file that has the SHA-256 that the release names. A program knows the
//     checksums of its own release. For another release, the caller gives the SHA-256 of the file
//     SHA256SUMS.
//   - A downloaded zip is stored in the cache folder of the user, and read from there the next
//     time. The cache never contains a part of a zip.
//   - Every download has a limit in bytes and in time.
package release

import (
	"regexp"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/version"
)

// Base is the address of the releases. Each version has a folder below this address.
const Base = "https://github.com/lullhq/lull/releases/download"

// SumsFile is the name of the file with the SHA-256 checksums of all other files, in the format of
// sha256sum.
const SumsFile = "SHA256SUMS"

// Program is the file name of the program of a function, in its zip and in a folder of builds.
const Program = "bootstrap"

// sums holds the SHA-256 checksums of the zips in the release of this program, as NAME=SUM,
// separated by commas. The linker sets this variable.
var sums string

// Own returns the version of the release that this program belongs to. Own returns an empty text if
// the program does not know the checksums of its release.
func Own() string {
	if sums == "" {
		return ""
	}
	return version.Of().Version
}

// Link returns the linker setting that gives a program the checksums of its release.
func Link(of map[string]string) string {
	var pairs []string
	for name, sum := range of {
		pairs = append(pairs, name+"="+sum)
	}
	slices.Sort(pairs)
	return "github.com/lullhq/lull/internal/deploy/release.sums=" + strings.Join(pairs, ",")
}

// Zip returns the file name of the zip of a program for an architecture of Lambda: arm64 or x86_64.
func Zip(version string, p names.Program, arch string) string {
	return "lull-" + p.File() + "_" + version + "_" + arch + ".zip"
}

var versionPattern = regexp.MustCompile(
	`^v(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})(-[0-9A-Za-z][0-9A-Za-z.-]{0,40})?$`)

// IsVersion reports whether a text is the version of a release, such as v0.1.0 or v0.2.0-rc.1.
func IsVersion(text string) bool { return versionPattern.MatchString(text) }

// IsCandidate reports whether a version comes before a release, such as v0.2.0-rc.1.
func IsCandidate(version string) bool { return strings.Contains(version, "-") }
