package yamlfile

import (
	"fmt"
	"io"
	"os"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/tree"
)

// Parse reads settings from the text of a lull.yaml. An empty text means the defaults. The faults
// of the text are *config.Fault, joined; text that is not YAML is a *tree.SyntaxError.
// Contradictions are not looked for in a text without faults, because flags may change it: call
// Validate afterwards.
func Parse(text []byte) (config.Config, error) {
	root, err := parse(text)
	if err != nil {
		return config.Config{}, fmt.Errorf("parse settings: %w", err)
	}
	return config.Decode(root)
}

// Check reads settings from a file and validates them. Each fault of the error has its line where
// the file says what is wrong there. The lines of the file are returned with valid settings.
func Check(path string) (config.Config, config.Lines, error) {
	c, lines, err := check(path)
	if err != nil {
		return c, nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, lines, nil
}

func check(path string) (config.Config, config.Lines, error) {
	file, err := os.Open(path)
	if err != nil {
		return config.Config{}, nil, fmt.Errorf("open settings: %w", err)
	}
	defer file.Close()
	text, err := tree.Read(file)
	if err != nil {
		return config.Config{}, nil, fmt.Errorf("read settings: %w", err)
	}
	root, err := parse(text)
	if err != nil {
		return config.Config{}, nil, fmt.Errorf("parse settings: %w", err)
	}
	lines := config.LinesOf(root)
	c, err := config.Decode(root)
	if err == nil {
		err = c.Validate()
	}
	lines.Locate(err)
	return c, lines, err
}

// Read reads settings from r, to its end.
func Read(r io.Reader) (config.Config, error) {
	text, err := tree.Read(r)
	if err != nil {
		return config.Config{}, fmt.Errorf("read settings: %w", err)
	}
	return Parse(text)
}

// Load reads settings from a file.
func Load(path string) (config.Config, error) {
	file, err := os.Open(path)
	if err != nil {
		return config.Config{}, fmt.Errorf("open settings: %w", err)
	}
	defer file.Close()
	c, err := Read(file)
	if err != nil {
		return config.Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
