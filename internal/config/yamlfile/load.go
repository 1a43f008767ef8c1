// SPDX-License-Identifier: Apache-2.0

package yamlfile

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/tree"
)

// Parse reads settings from the text of a lull.yaml. An empty text means the defaults. If the text
// has faults, the error joins them as *config.Fault; for text that is not YAML, it is a
// *tree.SyntaxError. In a text without faults, Parse does not look for contradictions between
// settings, because flags may still change them. Call Validate afterwards.
func Parse(text []byte) (config.Config, error) {
	c, _, err := decode(text, config.KindsLinked)
	return c, err
}

func decode(text []byte, kinds config.Kinds) (config.Config, config.Lines, error) {
	root, err := parse(text)
	if err != nil {
		return config.Config{}, nil, fmt.Errorf("parse settings: %w", err)
	}
	lines := config.LinesOf(root)
	c, err := config.DecodeAs(root, kinds)
	lines.Locate(err)
	return c, lines, withoutFollowUps(err)
}

// withoutFollowUps removes the fault that a setting is missing if another fault says that its name
// is misspelt.
func withoutFollowUps(err error) error {
	all := config.Faults(err)
	follows := func(e error) bool {
		var f *config.Fault
		return errors.As(e, &f) && f.Value == "" && strings.HasPrefix(f.Problem, "is missing") &&
			slices.ContainsFunc(all, func(other *config.Fault) bool {
				return other.Fix == "did you mean "+f.Setting+"?"
			})
	}
	return errors.Join(slices.DeleteFunc(config.Apart(err), follows)...)
}

// Check reads settings from a file and validates them. A fault has the line of its setting if the
// file contains the setting. If the settings are valid, Check also returns the lines of the file.
func Check(path string) (config.Config, config.Lines, error) {
	return CheckAs(path, config.KindsLinked)
}

// CheckAs is Check for settings that may name kinds which this program does not link.
func CheckAs(path string, kinds config.Kinds) (config.Config, config.Lines, error) {
	c, lines, err := load(path, kinds)
	if err != nil {
		return c, nil, err
	}
	if err := c.ValidateAs(kinds); err != nil {
		lines.Locate(err)
		return c, nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, lines, nil
}

// Load reads settings from a file.
func Load(path string) (config.Config, error) {
	c, _, err := load(path, config.KindsLinked)
	return c, err
}

func load(path string, kinds config.Kinds) (config.Config, config.Lines, error) {
	text, err := tree.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: correct the path, or write new settings with `lull new`", err)
	}
	if err != nil {
		return config.Config{}, nil, err
	}
	c, lines, err := decode(text, kinds)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return c, lines, err
}
