// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestBuilds(t *testing.T) {
	t.Parallel()
	vcs := func(version, revision, modified string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: modified},
		}}
	}
	within := func(lull debug.Module) *debug.BuildInfo {
		lull.Path = module
		info := vcs("v3.0.0", "0123456789abcdef", "true")
		info.Main.Path, info.Deps = "example.org/mine", []*debug.Module{{Path: "example.org/other", Version: "v9.0.0"}, &lull}
		return info
	}
	where := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	for name, tt := range map[string]struct {
		info            *debug.BuildInfo
		version, commit string
		want            string
	}{
		"nothing is known":        {want: "devel ("},
		"a working copy":          {info: vcs("(devel)", "0123456789abcdef", "true"), want: "devel (commit 0123456789ab with changes, "},
		"a clean working copy":    {info: vcs("v0.1.1-0.2026", "0123456789abcdef", "false"), want: "v0.1.1-0.2026 (commit 0123456789ab, "},
		"installed by go install": {info: &debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}}, want: "v0.1.0 ("},
		"released":                {info: &debug.BuildInfo{}, version: "v0.2.0", commit: "abc", want: "v0.2.0 (commit abc, "},
		"released, with another commit in the build information": {info: vcs("(devel)", "def", "true"), version: "v0.2.0", commit: "abc", want: "v0.2.0 (commit abc, "},
		"a program of another module":                            {info: within(debug.Module{Version: "v0.1.0"}), want: "v0.1.0 ("},
		"another module, with a copy of lull": {
			info: within(debug.Module{Version: "v0.1.0", Replace: &debug.Module{Path: "../lull"}}), want: "devel (",
		},
	} {
		if got := readBuild(tt.info, tt.version, tt.commit).String(); got != tt.want+where {
			t.Errorf("%s: got %q, want %q", name, got, tt.want+where)
		}
	}
	if got := Of(); got.Go == "" || got.Version == "" {
		t.Errorf("the build of this program has no version or no Go version: %+v", got)
	}
}
