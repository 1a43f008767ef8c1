// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
)

// functionsPath is the import path above the functions' programs.
const functionsPath = "github.com/lullhq/lull/functions/"

// BuildFunctions builds the programs of the functions into assetDir, which becomes Props.AssetDir.
// It builds the version of lull that the Go module in the current folder requires. It needs the go
// command, and the programs must be tools of that module. There is one index for each kind of sink:
//
//	go get -tool github.com/lullhq/lull/functions/{receive,index/opensearch,prune,dlq,feed,searchable}
func BuildFunctions(assetDir string, architecture Architecture) error {
	arch := map[Architecture]string{ARM64: "arm64", X86_64: "amd64"}[cmp.Or(architecture, ARM64)]
	if arch == "" {
		return fmt.Errorf("build functions: architecture %s is neither arm64 nor x86_64", architecture)
	}
	list := exec.Command("go", "list", "tool")
	said, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the tools of your module: %w", err)
	}
	var programs []names.Program
	for tool := range strings.FieldsSeq(string(said)) {
		if name, ok := strings.CutPrefix(tool, functionsPath); ok {
			programs = append(programs, names.Program(name))
		}
	}
	if len(programs) == 0 {
		return errors.New("build functions: they are not among the tools of your module: run go get -tool " + functionsPath +
			"{receive,index/opensearch,prune,dlq,feed,searchable}, with the kinds of your sinks")
	}
	for _, p := range programs {
		c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags",
			"-s -w -buildid=", "-o", filepath.Join(assetDir, string(p), release.Program), functionsPath+string(p))
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		if said, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", p, err, said)
		}
	}
	return nil
}
