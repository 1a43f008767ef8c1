package ground

import (
	_ "embed" // the settings
	"fmt"
	"os"
	"path/filepath"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	_ "github.com/lullhq/lull/sink/builtin"
	_ "github.com/lullhq/lull/source/builtin"
)

//go:embed settings.yaml
var settingsText string

//go:embed fanout.yaml
var fanoutText string

//go:embed forget.yaml
var forgetText string

//go:embed default.yaml
var defaultText string

// Sink is the name of the one sink of a stack under test, or of the first.
const Sink = "search"

// Archive is the second sink of a stack with default settings.
const Archive = "archive"

// Settings are the settings in which the stacks under test differ.
type Settings struct {
	Stack string
	Kind  config.FlightKind
	// Default is a stack with two sinks and sources of several kinds, and no other setting.
	Default bool
	// CMS is where the source cms of a default stack fetches documents.
	CMS string
	// First is where the first of two sinks is, of a stack in which a collection has both. Empty for
	// another stack.
	First string
	// Hook is where the receiver of the second of two sinks is, a webhook. Empty for another stack.
	Hook string
	// Archive has receive keep what it was given.
	Archive bool
	// Outage says what the stack does while the table is unreachable.
	Outage config.TableOutage
}

// write writes two files of settings: one for the functions, and one for an operator on this
// machine, who may reach the sink under another address. It returns both files and the settings.
func (g *Ground) write(s Settings) (deployed, here string, c *config.Config, err error) {
	for _, f := range []struct {
		path *string
		name string
		url  string
	}{{&deployed, "deployed", g.sinkURL}, {&here, "lull", g.Search.url}} {
		*f.path = filepath.Join(g.Work, s.Stack+"-"+f.name+".yaml")
		text := settingsText
		if s.Default {
			text = defaultText
		}
		if s.First != "" {
			text = fanoutText
		}
		if s.Hook != "" {
			text = forgetText
		}
		if s.Outage != "" {
			text += "\ntableOutage: " + string(s.Outage) + "\n"
		}
		if s.Archive {
			text += "\narchive: {keep: 7d}\n"
		}
		text = os.Expand(text, func(name string) string {
			return map[string]string{
				"STACK": s.Stack, "KIND": string(s.Kind), "SINK_URL": f.url,
				"INDEX": s.Stack + "-{collection}", "CMS": s.CMS, "FIRST": s.First, "HOOK": s.Hook,
			}[name]
		})
		if err := os.WriteFile(*f.path, []byte(text), 0o644); err != nil {
			return "", "", nil, fmt.Errorf("write settings: %w", err)
		}
	}
	settings, err := yamlfile.Load(here)
	if err == nil {
		err = settings.ValidateDeployed()
	}
	if err != nil {
		return "", "", nil, fmt.Errorf("settings of stack %s: %w", s.Stack, err)
	}
	return deployed, here, &settings, nil
}
