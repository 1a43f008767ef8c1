// SPDX-License-Identifier: Apache-2.0

package infra

import (
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/deploy/names"
	"github.com/lullhq/lull/internal/seam/flight"
)

// The types of internal packages that a stack outside of this module needs.
type (
	// Settings are the settings in lull.yaml.
	Settings = config.Config
	// Lane is one ingest queue of a sink.
	Lane = flight.Lane
	// Function is one of the four functions of a sink.
	Function = names.Function
	// Fault is one thing that is wrong with the settings or the Props, with the fix.
	Fault = config.Fault
)

// The lanes.
const (
	Live = flight.Live
	Bulk = flight.Bulk
)

// The functions.
const (
	Receive = names.Receive
	Index   = names.Index
	Prune   = names.Prune
	DLQ     = names.DLQ
)

// LoadSettings reads lull.yaml. It reports all faults of the text at once. Props.Validate finds
// contradictions between settings.
func LoadSettings(path string) (*Settings, error) {
	c, err := yamlfile.Load(path)
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// Faults splits an error of LoadSettings or Props.Validate.
func Faults(err error) []*Fault { return config.Faults(err) }
