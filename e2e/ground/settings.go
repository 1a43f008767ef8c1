// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"cmp"
	_ "embed" // embeds the settings files
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/sink"
	_ "github.com/lullhq/lull/sink/builtin"
	_ "github.com/lullhq/lull/source/builtin"
)

//go:embed settings.yaml
var settingsText string

//go:embed fanout.yaml
var fanoutText string

//go:embed forget.yaml
var forgetText string

//go:embed work.yaml
var workText string

//go:embed default.yaml
var defaultText string

// Sink is the name of the only sink of a stack under test, or of its first sink.
const Sink = "search"

// Archive is the second sink of a stack with default settings.
const Archive = "archive"

// Settings are the settings in which the stacks under test differ.
type Settings struct {
	Stack string
	Kind  config.FlightKind
	// Default selects a stack with default settings, two sinks and sources of several kinds.
	Default bool
	// Works selects a stack with a canary, a verified collection and a URL.
	Works bool
	// CMS is the address from which the source cms of a stack fetches documents.
	CMS string
	// First selects a stack with a collection that has two sinks. It is the address of the first
	// sink.
	First string
	// Hook selects a stack with a collection whose second sink is a webhook. It is the address of
	// the webhook's receiver.
	Hook string
	// Archive turns on the archive, in which receive keeps the received messages.
	Archive bool
	// Outage says what the stack does while the table is unreachable.
	Outage config.TableOutage
	// Parts makes the stack a part of several, which write to the same indices. The name of the
	// stack ends in the part's number.
	Parts config.Parts
	// Quiet is debounce.quiet of a stack with short times. Default 4 s.
	Quiet time.Duration
}

// auth returns how a stack authenticates to OpenSearch.
func (g *Ground) auth() sink.AuthKind {
	if g.Real {
		return sink.AuthSigV4
	}
	return sink.AuthNone
}

// indices returns the first part of the names of a stack's indices.
func indices(stack string, parts config.Parts) string {
	if parts.Of > 1 {
		return strings.TrimSuffix(stack, "-"+strconv.Itoa(parts.This))
	}
	return stack
}

// write writes two settings files: one for the functions, and one for an operator on this machine.
// The address of the sink may differ between the two. write returns both paths and the settings.
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
		if s.Works {
			text = workText
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
		if s.Parts.Of > 1 {
			text += fmt.Sprintf("\nparts: {of: %d, this: %d}\n", s.Parts.Of, s.Parts.This)
		}
		text = os.Expand(text, func(name string) string {
			return map[string]string{
				"REGION": g.Account.Region, "ACCOUNT": g.AccountID, "AUTH": string(g.auth()), "OWNER": g.owner(),
				"QUIET": cmp.Or(s.Quiet, 4*time.Second).String(), "STACK": s.Stack, "KIND": string(s.Kind), "SINK_URL": f.url,
				"INDEX": indices(s.Stack, s.Parts) + "-{collection}", "CMS": s.CMS, "FIRST": s.First, "HOOK": s.Hook,
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
