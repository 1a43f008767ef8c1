// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/deploy/release"
)

// platform is an operating system and an architecture, with the names that Go uses.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

// platforms lists the platforms for which the command line and the CDK app are built.
var platforms = []platform{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
	{"windows", "amd64"},
	{"windows", "arm64"},
}

// architectures maps the name of an architecture in Go to its name in Lambda.
var architectures = map[string]string{"arm64": "arm64", "amd64": "x86_64"}

// programs lists the programs that are built for every platform.
var programs = []program{
	{"lull", "./cmd/lull", []string{"LICENSE", "README.md"}},
	{"lull-infra", "./infra/cmd", []string{"LICENSE", "README.md", "docs/lull.yaml"}},
}

type program struct {
	name, folder string
	beside       []string // the other files in the archive of the program
}

// completionFiles maps each shell that has completion to the name of its completion file.
var completionFiles = map[string]string{"bash": "lull.bash", "zsh": "_lull", "fish": "lull.fish", "powershell": "lull.ps1"}

// making holds the state of a release while it is built.
type making struct {
	root, version, commit, notes string
	seconds                      int64 // the time of the commit

	dir   string // the folder that becomes the release, as an absolute path
	total string // the SHA-256 of SHA256SUMS
	log   io.Writer
}

func (r *making) scratch() string { return filepath.Join(r.dir, ".scratch") }

func (r *making) time() time.Time { return time.Unix(r.seconds, 0).UTC() }

// make builds all files of the release. The method builds the functions first, because the CDK app
// contains the checksums of their zips.
func (r *making) make(ctx context.Context) error {
	sums := make(map[string]string)
	for _, arch := range slices.Sorted(maps.Keys(architectures)) {
		if err := r.functions(ctx, arch, sums); err != nil {
			return err
		}
	}
	completion, err := r.completion(ctx)
	if err != nil {
		return err
	}
	for _, p := range programs {
		for _, on := range platforms {
			if err := r.program(ctx, p, on, sums, completion); err != nil {
				return err
			}
		}
	}
	if err := r.template(ctx); err != nil {
		return err
	}
	if err := r.write("CHANGELOG.md", []byte("# lull "+r.version+"\n\n"+r.notes+"\n")); err != nil {
		return err
	}
	return r.sums()
}

// functions builds the Lambda functions with the Makefile, as users do, and packs each function
// into a zip.
func (r *making) functions(ctx context.Context, arch string, sums map[string]string) error {
	dist := filepath.Join(r.scratch(), "functions", arch)
	if _, err := r.run(ctx, nil, "make", "build", "ARCH="+arch, "DIST="+dist); err != nil {
		return err
	}
	built, err := programsIn(dist)
	if err != nil {
		return err
	}
	for _, p := range built {
		path := filepath.Join(dist, string(p), release.Program)
		name := release.Zip(r.version, p, architectures[arch])
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		// The fixed time has the effect that the same program gives the same zip at every commit.
		packed, err := zipArchive(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), []entry{{release.Program, 0o755, data}})
		if err == nil {
			err = r.write(name, packed)
		}
		if err == nil && arch == "arm64" {
			err = r.bom(ctx, path, "lull-"+p.File())
		}
		if err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
		sums[name] = release.Sum(packed)
	}
	return nil
}

// programsIn lists the programs of Lambda functions that `make build` wrote to a folder.
func programsIn(dist string) (all []names.Program, err error) {
	err = filepath.WalkDir(dist, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == release.Program {
			var folder string
			folder, err = filepath.Rel(dist, filepath.Dir(path))
			all = append(all, names.Program(filepath.ToSlash(folder)))
		}
		return err
	})
	return all, err
}

// programPath returns the path of the built program for a platform.
func (r *making) programPath(p program, on platform) string {
	name := p.name
	if on.os == "windows" {
		name += ".exe"
	}
	return filepath.Join(r.scratch(), on.String(), name)
}

// build builds a program for a platform.
func (r *making) build(ctx context.Context, p program, on platform, sums map[string]string) error {
	const of = "github.com/lullhq/lull/internal/deploy/version"
	link := "-s -w -X " + of + ".version=" + r.version + " -X " + of + ".commit=" + r.commit
	if p.name == "lull-infra" {
		link += " -X " + release.Link(sums)
	}
	_, err := r.run(ctx, []string{"GOOS=" + on.os, "GOARCH=" + on.arch, "CGO_ENABLED=0"},
		"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", link, "-o", r.programPath(p, on), p.folder)
	return err
}

// program builds a program for a platform and packs it.
func (r *making) program(
	ctx context.Context,
	p program,
	on platform,
	sums map[string]string,
	completion []entry,
) error {
	if err := r.build(ctx, p, on, sums); err != nil {
		return err
	}
	path, folder := r.programPath(p, on), p.name+"_"+r.version+"_"+on.String()
	content := []entry{{name: path, mode: 0o755}}
	for _, file := range p.beside {
		content = append(content, entry{name: filepath.Join(r.root, file), mode: 0o644})
	}
	for i, file := range content {
		data, err := os.ReadFile(file.name)
		if err != nil {
			return err
		}
		content[i].name, content[i].data = filepath.Base(file.name), data
	}
	if p.name == "lull" {
		content = append(content, completion...)
	}
	for i := range content {
		content[i].name = folder + "/" + content[i].name
	}
	pack, ending := tarArchive, ".tar.gz"
	if on.os == "windows" {
		pack, ending = zipArchive, ".zip"
	}
	packed, err := pack(r.time(), content)
	if err == nil {
		err = r.write(folder+ending, packed)
	}
	if err == nil && on == platforms[0] {
		err = r.bom(ctx, path, p.name)
	}
	if err != nil {
		return fmt.Errorf("pack %s: %w", folder, err)
	}
	return nil
}

// completion runs the command line on this machine to get the completion of each shell.
func (r *making) completion(ctx context.Context) (files []entry, err error) {
	here := platform{runtime.GOOS, runtime.GOARCH}
	if err := r.build(ctx, programs[0], here, nil); err != nil {
		return nil, err
	}
	for _, shell := range slices.Sorted(maps.Keys(completionFiles)) {
		text, err := r.run(ctx, nil, r.programPath(programs[0], here), "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, entry{"completion/" + completionFiles[shell], 0o644, text})
	}
	return files, nil
}

// template runs the CDK app on this machine to get the template with parameters. The CDK app needs
// Node.js.
func (r *making) template(ctx context.Context) error {
	const name = "lull.template.json"
	path := filepath.Join(r.scratch(), name)
	env := []string{"LULL_RELEASE=" + r.version, "LULL_TEMPLATE=" + path, "JSII_DEPRECATED=quiet"}
	if _, err := r.run(ctx, env, r.programPath(programs[1], platform{runtime.GOOS, runtime.GOARCH})); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return r.write(name, text)
}

// bom writes the bill of materials of a program in the format CycloneDX. The method replaces the
// current time by the time of the commit, and omits the checksums of the tool, which differ between
// machines.
func (r *making) bom(ctx context.Context, path, name string) error {
	text, err := r.run(ctx, nil, "go", "tool", "-modfile=tools/go.mod", "cyclonedx-gomod", "bin",
		"-json", "-noserial", "-std", "-version", r.version, path)
	var doc map[string]any
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	meta, ok := doc["metadata"].(map[string]any)
	if err != nil || !ok {
		return fmt.Errorf("bill of materials of %s: no metadata: %w", name, err)
	}
	meta["timestamp"] = r.time().Format(time.RFC3339)
	tools, _ := meta["tools"].([]any)
	for _, tool := range tools {
		if t, ok := tool.(map[string]any); ok {
			delete(t, "hashes")
		}
	}
	text, err = json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return r.write(name+"_"+r.version+".cdx.json", append(text, '\n'))
}

// sums writes the SHA-256 checksums of all files, in the format of sha256sum --check.
func (r *making) sums() error {
	files, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(r.dir, f.Name()))
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(&list, "%s  %s\n", release.Sum(data), f.Name())
	}
	r.total = release.Sum([]byte(list.String()))
	return r.write(release.SumsFile, []byte(list.String()))
}

// write writes a file of the release.
func (r *making) write(name string, data []byte) error {
	_, _ = fmt.Fprintf(r.log, "%9s  %s\n", strconv.Itoa(len(data)), name)
	return os.WriteFile(filepath.Join(r.dir, name), data, 0o644)
}

// run runs a command in the working tree, and returns the standard output of the command. If the
// command fails, the error contains the standard error as well.
func (r *making) run(ctx context.Context, env []string, command ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = r.root
	// Flags of the user or another version of Go would change the bytes.
	c.Env = append(os.Environ(), "GOFLAGS=", "GOTOOLCHAIN="+runtime.Version())
	c.Env = append(c.Env, env...)
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", strings.Join(command, " "), err, said.String(), out.String())
	}
	return out.Bytes(), nil
}

// git runs a git command in the working tree, and returns the output without surrounding spaces.
func (r *making) git(ctx context.Context, question ...string) (string, error) {
	out, err := r.run(ctx, nil, append([]string{"git"}, question...)...)
	return strings.TrimSpace(string(out)), err
}
