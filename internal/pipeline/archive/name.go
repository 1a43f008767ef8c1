// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lullhq/lull/internal/seam/flight"
)

// Name names an object. Names sort by the time when the batch was received.
type Name string

// layout is the format of the time in a name: UTC, milliseconds, a folder for each hour.
const layout = "2006/01/02/15/0405.000"

// Parts are the fields of a name.
type Parts struct {
	Received time.Time // in UTC, in whole milliseconds
	Lane     flight.Lane
	Sink     string
	Messages int    // when it was written; [Forgetter] may have removed some since
	ID       string // the id of the invocation
}

// Name returns the name of an object with these parts.
func (p Parts) Name() Name {
	return After(p.Received) + Name(fmt.Sprintf("_%s_%s_%d_%s", p.Lane, p.Sink, p.Messages, p.ID))
}

// After returns a name that sorts before every batch that was received at this time or later, and
// after all earlier batches.
func After(at time.Time) Name { return Name(at.UTC().Format(layout)) }

// Parts splits a name into its fields. It returns an error if the name does not belong to the
// archive.
func (n Name) Parts() (Parts, error) {
	fields := strings.Split(string(n), "_")
	if len(fields) != 5 {
		return Parts{}, fmt.Errorf("%q is not the name of an object of the archive", n)
	}
	at, err := time.ParseInLocation(layout, fields[0], time.UTC)
	p := Parts{Received: at, Lane: flight.Lane(fields[1]), Sink: fields[2], ID: fields[4]}
	if err == nil {
		p.Messages, err = strconv.Atoi(fields[3])
	}
	if err != nil || p.Name() != n || p.Messages < 0 || p.Lane != flight.Live && p.Lane != flight.Bulk {
		return Parts{}, fmt.Errorf("%q is not the name of an object of the archive", n)
	}
	return p, nil
}
