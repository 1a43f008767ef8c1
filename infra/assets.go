package infra

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/names"
	"github.com/lullhq/lull/internal/release"
)

// assets are the functions' code. Each is staged once and serves every sink: the settings are the
// same, the environment says which sink it is.
type assets map[names.Function]awslambda.Code

// stage lays binary and settings side by side in one folder per function. CDK copies an asset when
// a function takes it, so the folder is only needed until the construct stands; the caller removes
// it.
func stage(p *Props) (dir string, err error) {
	settings, err := json.Marshal(p.Config.Resolve())
	if err != nil {
		return "", fmt.Errorf("stage functions: %w", err)
	}
	dir, err = os.MkdirTemp("", "lull-assets-")
	if err != nil {
		return "", fmt.Errorf("stage functions: %w", err)
	}
	for _, f := range p.programs() {
		folder := filepath.Join(dir, string(f))
		program, err := p.program(f)
		err = errors.Join(
			err,
			os.MkdirAll(folder, 0o755),
			os.WriteFile(filepath.Join(folder, release.Program), program, 0o755),
			os.WriteFile(filepath.Join(folder, lambda.SettingsFile), settings, 0o644),
		)
		if err != nil {
			return "", errors.Join(fmt.Errorf("stage %s: %w", f, err), os.RemoveAll(dir))
		}
	}
	return dir, nil
}

// program is a function's program: of AssetDir, otherwise of the release.
func (p *Props) program(f names.Function) ([]byte, error) {
	if p.AssetDir != "" {
		return os.ReadFile(filepath.Join(p.AssetDir, string(f), release.Program))
	}
	if program, ok := p.fetched[f]; ok {
		return program, nil
	}
	from := release.Source{
		Version: cmp.Or(p.Release.Version, release.Own()), Base: p.Release.URL, Sum: p.Release.Sum,
		Cache: release.CacheDir(),
	}
	program, err := from.Program(context.Background(), f, string(p.architecture()))
	if err == nil {
		if p.fetched == nil {
			p.fetched = make(map[names.Function][]byte)
		}
		p.fetched[f] = program
	}
	return program, err
}

// programs are those that the stack takes.
func (p *Props) programs() []names.Function {
	all := names.Functions()
	if p.Config.CommitFeed {
		all = append(all, names.Feed)
	}
	return all
}

// newAssets are the staged folders as code.
func (p *Props) newAssets(dir string) assets {
	a := make(assets)
	for _, f := range p.programs() {
		a[f] = awslambda.Code_FromAsset(jsii.String(filepath.Join(dir, string(f))), nil)
	}
	return a
}
