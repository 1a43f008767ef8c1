// SPDX-License-Identifier: Apache-2.0

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
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
)

// assets holds the code of each program. A program is staged once for all sinks that need it. The
// settings next to the program are the same for all these sinks, and only the environment names the
// sink.
type assets map[names.Program]awslambda.Code

// stage writes each program and the settings into its own folder below dir. CDK copies an asset
// when a function uses it, so the caller removes dir once the construct is built.
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

// program returns the program from AssetDir, or from the release if AssetDir is empty. If AssetDir
// has a program index that its owner built with custom kinds, program returns index instead of
// index/KIND.
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

// errTwoPrograms is returned if AssetDir has both index/KIND and index. lull cannot know which of
// the two programs is meant, and one may be left over from an earlier build.
var errTwoPrograms = errors.New("and index/" + release.Program + " are both there")

// ownIndex returns the name of the program that may replace index/KIND: an index that was built
// with custom kinds. It returns false if the program has no kind in its name.
func ownIndex(of names.Program) (names.Program, bool) {
	own, _, isKind := strings.Cut(string(of), "/")
	return names.Program(own), isKind
}

// built reads a program from AssetDir.
func (p *Props) built(of names.Program) ([]byte, error) { return os.ReadFile(p.path(of)) }

// path is the file of a program in AssetDir.
func (p *Props) path(of names.Program) string {
	return filepath.Join(p.AssetDir, filepath.FromSlash(string(of)), release.Program)
}

// programs lists the programs that the stack needs, each once.
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
	if p.Config.SearchableCalls != nil {
		all = append(all, names.Searchable.Program(""))
	}
	if len(p.works()) > 0 {
		all = append(all, names.Job.Program(""))
	}
	return all
}

// newAssets makes a CDK asset of each staged folder.
func (p *Props) newAssets(dir string) assets {
	a := make(assets)
	for _, of := range p.programs() {
		a[of] = awslambda.Code_FromAsset(jsii.String(filepath.Join(dir, of.File())), nil)
	}
	return a
}
