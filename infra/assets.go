package infra

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"github.com/lullhq/lull/internal/aws/lambda"
	"github.com/lullhq/lull/internal/names"
	"github.com/lullhq/lull/internal/release"
)

// assets are the programs as code. Each is staged once and serves every sink that it fits: the
// settings are the same, the environment says which sink it is.
type assets map[names.Program]awslambda.Code

// stage lays binary and settings side by side in one folder per program. CDK copies an asset when
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
	for _, of := range p.programs() {
		folder := filepath.Join(dir, of.File())
		program, err := p.program(of)
		err = errors.Join(
			err,
			os.MkdirAll(folder, 0o755),
			os.WriteFile(filepath.Join(folder, release.Program), program, 0o755),
			os.WriteFile(filepath.Join(folder, lambda.SettingsFile), settings, 0o644),
		)
		if err != nil {
			return "", errors.Join(fmt.Errorf("stage %s: %w", of, err), os.RemoveAll(dir))
		}
	}
	return dir, nil
}

// program is a program: of AssetDir, otherwise of the release. A program index of AssetDir that its
// owner built with kinds of their own stands for index/KIND.
func (p *Props) program(of names.Program) ([]byte, error) {
	if p.AssetDir != "" {
		program, err := p.built(of)
		own, isKind := ownIndex(of)
		if !isKind {
			return program, err
		}
		theirs, missing := p.built(own)
		switch {
		case errors.Is(err, os.ErrNotExist) && missing == nil:
			return theirs, nil
		case err == nil && missing == nil:
			return nil, errTwoPrograms
		}
		return program, err
	}
	if program, ok := p.fetched[of]; ok {
		return program, nil
	}
	from := release.Source{
		Version: cmp.Or(p.Release.Version, release.Own()), Base: p.Release.URL, Sum: p.Release.Sum,
		Cache: release.CacheDir(),
	}
	program, err := from.Program(context.Background(), of, string(p.architecture()))
	if err == nil {
		if p.fetched == nil {
			p.fetched = make(map[names.Program][]byte)
		}
		p.fetched[of] = program
	}
	return program, err
}

// errTwoPrograms is what is wrong where AssetDir has index/KIND and index: nobody can tell which
// one is meant, and one of them may be left from another build.
var errTwoPrograms = errors.New("and index/" + release.Program + " are both there")

// ownIndex is the program that stands for index/KIND where somebody built it with kinds of their
// own; false for any other program.
func ownIndex(of names.Program) (names.Program, bool) {
	own, _, isKind := strings.Cut(string(of), "/")
	return names.Program(own), isKind
}

// built is a program of AssetDir.
func (p *Props) built(of names.Program) ([]byte, error) { return os.ReadFile(p.path(of)) }

// path is where a program lies in AssetDir.
func (p *Props) path(of names.Program) string {
	return filepath.Join(p.AssetDir, filepath.FromSlash(string(of)), release.Program)
}

// programs are those that the stack takes, each once.
func (p *Props) programs() (all []names.Program) {
	for _, sink := range sinkNames(p.Config) {
		for _, f := range names.Functions() {
			if of := f.Program(p.Config.Sinks[sink].Kind); !slices.Contains(all, of) {
				all = append(all, of)
			}
		}
	}
	if p.Config.CommitFeed {
		all = append(all, names.Feed.Program(""))
	}
	return all
}

// newAssets are the staged folders as code.
func (p *Props) newAssets(dir string) assets {
	a := make(assets)
	for _, of := range p.programs() {
		a[of] = awslambda.Code_FromAsset(jsii.String(filepath.Join(dir, of.File())), nil)
	}
	return a
}
