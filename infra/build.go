package infra

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/lullhq/lull/internal/names"
	"github.com/lullhq/lull/internal/release"
)

// BuildFunctions builds the functions of the version of lull that the Go module in the current
// folder requires, into a folder that becomes AssetDir. It needs the go command, and the five
// programs among the module's tools:
//
//	go get -tool github.com/lullhq/lull/functions/{receive,index,prune,dlq,feed}
func BuildFunctions(assetDir string, architecture Architecture) error {
	arch := map[Architecture]string{ARM64: "arm64", X86_64: "amd64"}[cmp.Or(architecture, ARM64)]
	if arch == "" {
		return fmt.Errorf("build functions: architecture %s is neither arm64 nor x86_64", architecture)
	}
	for _, f := range append(names.Functions(), names.Feed) {
		path := "github.com/lullhq/lull/functions/" + string(f)
		c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc",
			"-ldflags", "-s -w -buildid=", "-o", filepath.Join(assetDir, string(f), release.Program), path)
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		if said, err := c.CombinedOutput(); err != nil {
			return errors.Join(fmt.Errorf("build %s: %w\n%s", f, err, said),
				errors.New("is it among the tools of your module? Run go get -tool "+path))
		}
	}
	return nil
}
