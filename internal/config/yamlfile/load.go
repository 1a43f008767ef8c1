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
