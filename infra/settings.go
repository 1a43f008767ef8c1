package infra

import (
	"github.com/lullhq/lull/internal/config"
	"github.com/lullhq/lull/internal/config/yamlfile"
	"github.com/lullhq/lull/internal/flight"
	"github.com/lullhq/lull/internal/names"
)

// What a stack outside of this module needs of the internal packages, under names that it may use.
type (
	// Settings are lull.yaml, read.
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

// LoadSettings reads lull.yaml. The faults of the text come all at once; Props.Validate looks for
// contradictions.
func LoadSettings(path string) (*Settings, error) {
	c, err := yamlfile.Load(path)
	if err != nil {
		return nil, err
	}
	return &c, nil
}

// Faults takes apart an error of LoadSettings or Props.Validate.
func Faults(err error) []*Fault { return config.Faults(err) }
