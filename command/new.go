// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/deploy/version"
	"github.com/lullhq/lull/internal/terminal"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/source"
)

//go:embed stackfiles
var stackFiles embed.FS

// cdkVersion is the CDK command line that the construct was tried with (docs/deploy.md).
const cdkVersion = "2.1148.1"

// newStack has the values for the files that `lull new` writes.
type newStack struct {
	Stack, Name, Collection string
	Source                  source.Kind
	Options                 []string // lines of lull.yaml
	Bucket                  string   // the bucket of the objects that messages refer to
	Sink                    sink.Kind
	URL                     string
	Dev                     string // the command that runs the stack
	CDK, Version            string
	Released                bool
}

// newCommand writes the folder of a new stack.
func newCommand(std *streams) *cobra.Command {
	from, to, stack := "native", defaultKind, ""
	return define(&cobra.Command{
		Use: "new DIR", Short: "Write the files of a first stack: settings, example events, deployment with CDK",
		Long: "Writes the files of a stack into DIR, which must be empty or must not exist. There is a commented " +
			"lull.yaml with the schema for your editor, and six messages as your upstream sends them. A cdk.json says " +
			"how CDK deploys it, and a README has the next three commands. The stack runs at once, without a server and " +
			"without AWS.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := prepare(args[0], from, to, stack)
			if err != nil {
				return usage(err)
			}
			files, err := s.files()
			if err != nil {
				return usage(err)
			}
			if err := writeNew(args[0], files); err != nil {
				return err
			}
			answer := map[string]any{"folder": args[0], "files": slices.Sorted(maps.Keys(files))}
			return std.print(answer, func(w io.Writer) {
				terminal.Printf(w, "%s is a stack now. Next:\n\n", args[0])
				if filepath.Clean(args[0]) != "." {
					terminal.Printf(w, "  cd %s\n", quoted(args[0]))
				}
				terminal.Printf(w, "  %s\n\nREADME.md has the rest.\n", s.Dev)
			})
		},
	}, ends{
		exitOK: "the folder is written", exitFailed: "a file could not be written",
		exitUsage: "usage, or a folder that is not empty",
	},
		flag("source", &from, "`KIND` of the messages: "+strings.Join(source.Kinds(), ", ")),
		flag("sink", &to, "`KIND` of the search engine: "+strings.Join(sink.Kinds(), ", ")),
		flag("stack", &stack, "`NAME` of the stack; without it the name of the folder"),
		std.outputFlag(),
	)
}

// quoted quotes a name for a shell.
func quoted(name string) string {
	if plain.MatchString(strings.TrimLeft(name, "./~")) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// prepare chooses the values for the files of the folder.
func prepare(dir, from, to, stack string) (s newStack, err error) {
	kind, known := source.Lookup(from)
	if !known {
		err := fmt.Errorf("--source %s: want one of %s", from, strings.Join(source.Kinds(), ", "))
		if instead := source.Carries(from); instead != "" {
			err = fmt.Errorf("%w; %s", err, instead)
		}
		return s, err
	}
	engine, known := sink.Lookup(to)
	if !known {
		return s, fmt.Errorf("--sink %s: want one of %s", to, strings.Join(sink.Kinds(), ", "))
	}
	if kind.Example.Write == nil {
		return s, fmt.Errorf("--source %s: the kind has no example", from)
	}
	if stack == "" {
		whole, err := filepath.Abs(dir)
		if err != nil {
			return s, fmt.Errorf("name the stack: %w", err)
		}
		stack = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(filepath.Base(whole)), "-"), "-")
		if stack = stack[:min(len(stack), 32)]; stack == "" || stack[0] < 'a' {
			stack = "lull"
		}
	}
	build := version.Of()
	s = newStack{
		Stack: stack, Name: from, Collection: "content", Source: kind, Bucket: kind.Example.Change.Bucket, Sink: engine,
		CDK: cdkVersion, Version: build.Version,
		Released: build.Version != version.Unknown && !strings.Contains(build.Version, "-0."),
	}
	s.URL = engine.Example()
	s.Dev = "lull dev --local --config lull.yaml --events events.ndjson -v"
	if s.Bucket != "" {
		s.Dev += " --buckets buckets"
	}
	s.Options, err = optionLines(kind)
	return s, err
}

// optionLines returns the options with which the kind decodes its example, as lines of lull.yaml.
func optionLines(kind source.Kind) ([]string, error) {
	if kind.Example.Options == nil {
		return nil, nil
	}
	text, err := json.Marshal(config.Config{Sources: map[string]config.Source{
		"x": {Kind: kind.Name, Options: kind.Example.Options},
	}})
	if err != nil {
		return nil, fmt.Errorf("write the options of kind %s: %w", kind.Name, err)
	}
	var lines []string
	group := ""
	for _, s := range kind.Settings {
		value := gjson.GetBytes(text, "sources.x."+s.Name)
		if !value.Exists() || value.Raw == `""` || value.Raw == "[]" || value.Raw == "false" {
			continue
		}
		indent, last := "", s.Name
		if of, name, nested := strings.Cut(s.Name, "."); nested {
			if indent, last = "  ", name; of != group {
				group = of
				lines = append(lines, group+":")
			}
		}
		lines = append(lines, fmt.Sprintf("%s%s: %s # %s", indent, last, value.Raw, s.Doc))
	}
	return lines, nil
}

// files returns the files of the folder, by their names.
func (s newStack) files() (map[string][]byte, error) {
	files := map[string][]byte{
		"lull.schema.json": config.Schema(),
		"cdk.json":         []byte("{\n  \"app\": \"lull-infra\",\n  \"context\": {}\n}\n"),
		".gitignore":       []byte("cdk.out/\n"),
	}
	for name, from := range map[string]string{"lull.yaml": "lull.yaml.tmpl", "README.md": "README.md.tmpl"} {
		t, err := template.ParseFS(stackFiles, "stackfiles/"+from)
		var text bytes.Buffer
		if err == nil {
			err = t.Execute(&text, s)
		}
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		files[name] = text.Bytes()
	}
	settings, err := yamlfile.Parse(files["lull.yaml"])
	if err == nil {
		err = settings.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("the settings would not be valid, perhaps because of --stack %s: %w", s.Stack, err)
	}
	return files, s.events(settings.Sources[s.Name], files)
}

// events writes messages about three documents: a burst that arrives out of order, a document with
// one version, and a document that is deleted again.
func (s newStack) events(settings config.Source, files map[string][]byte) error {
	example := s.Source.Example.Change
	var lines bytes.Buffer
	for _, e := range []struct {
		document int
		version  uint32
		op       event.Operation
	}{
		{1, 1, event.Put},
		{1, 3, event.Put},
		{1, 2, event.Put},
		{2, 1, event.Put},
		{3, 1, event.Put},
		{3, 2, event.Delete},
	} {
		change := example
		change.ID = another(example.ID, e.document)
		change.Version, change.Op = source.NumberedVersion(settings.Class, e.version), e.op
		if title := gjson.Get(change.Data, "title"); title.Exists() {
			changed, err := sjson.Set(change.Data, "title", fmt.Sprintf("%s, version %d", title.Str, e.version))
			if err != nil {
				return fmt.Errorf("write an event: %w", err)
			}
			change.Data = changed
		}
		body, err := s.Source.Example.Write(settings, change)
		if err != nil {
			return fmt.Errorf("write an event of kind %s: %w", s.Source.Name, err)
		}
		lines.WriteString(body + "\n")
		if s.Bucket != "" && e.document != 3 {
			files[path.Join("buckets", s.Bucket, change.ID)] = fmt.Appendf(nil, "{\"title\":\"Document %d\"}\n", e.document)
		}
	}
	files["events.ndjson"] = lines.Bytes()
	return nil
}

// another returns the id of the n-th example document. It changes the last digit of the id before
// an extension, or adds a number.
func another(id string, n int) string {
	ext := path.Ext(id)
	stem := strings.TrimSuffix(id, ext)
	if n == 1 || stem == "" {
		return id
	}
	last := strings.IndexByte("0123456789abcdef", stem[len(stem)-1])
	if last < 0 {
		return fmt.Sprintf("%s-%d%s", stem, n, ext)
	}
	return fmt.Sprintf("%s%d%s", stem[:len(stem)-1], (last+n-1)%10, ext)
}

// writeNew writes files into a folder that is empty or does not exist.
func writeNew(dir string, files map[string][]byte) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return usagef("%s cannot be read as a folder: %w", dir, err)
	case len(entries) > 0:
		return usagef("%s is not empty: %s is in it. Name a new folder", dir, entries[0].Name())
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(at), 0o750)
		if err == nil {
			err = os.WriteFile(at, files[name], 0o600)
		}
		if err != nil {
			return &exitError{exitFailed, fmt.Errorf("write the stack: %w", err)}
		}
	}
	return nil
}
