// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
)

// The prefixes of keys. Roles and lifecycle rules also use these prefixes.
const (
	FlightPrefix    = "flights/"
	DeadPrefix      = "dead/"
	SchedulePrefix  = "scheduled/"
	manifestName    = "manifest"
	checkpointStart = "next-"
)

const (
	// youngFlight is the age below which Delete does not list the checkpoints. A young flight has
	// few legs, so Delete deletes all possible checkpoints. Most flights end after seconds. A
	// listing costs as much as a write, and deletions are free.
	youngFlight = time.Minute
	// youngLegs is more than the legs of any young flight, because a leg lasts at least ten seconds
	// (flight.continueAfter).
	youngLegs = 8
	// maxDelete is how many objects one request can delete at most.
	maxDelete = 1000
)

// Flights stores manifests and checkpoints. The type Flights is safe for concurrent use.
type Flights struct {
	bucket *Bucket
	clk    clock.Clock
}

var _ flight.Store = (*Flights)(nil)

// NewFlights returns the flights of a bucket.
func NewFlights(b *Bucket) *Flights { return &Flights{bucket: b, clk: clock.System{}} }

func folder(id flight.ID) string      { return FlightPrefix + string(id) + "/" }
func manifestKey(id flight.ID) string { return folder(id) + manifestName }

func checkpointKey(id flight.ID, n int) string {
	return folder(id) + checkpointStart + strconv.Itoa(n)
}

// Put writes the manifest as one object.
func (f *Flights) Put(ctx context.Context, m *flight.Manifest) error {
	if err := checkID(m.Flight); err != nil {
		return fmt.Errorf("put manifest: %w", err)
	}
	b, err := flight.Encode(m)
	if err != nil {
		return fmt.Errorf("put manifest: %w", err)
	}
	if err := f.bucket.put(ctx, manifestKey(m.Flight), b); err != nil {
		return fmt.Errorf("put manifest of flight %s: %w", m.Flight, err)
	}
	return nil
}

// checkID refuses an id with which a key could name objects of another flight.
func checkID(id flight.ID) error {
	if id == "" || strings.ContainsAny(string(id), "/~") {
		return fmt.Errorf("flight id %q is not a ULID", id)
	}
	return nil
}

// Get reads and unpacks the manifest.
func (f *Flights) Get(ctx context.Context, id flight.ID) (*flight.Manifest, error) {
	if err := checkID(id); err != nil {
		return nil, fmt.Errorf("get manifest: %w", err)
	}
	b, err := f.bucket.get(ctx, f.bucket.name, manifestKey(id), maxObject)
	if errors.Is(err, errMissing) {
		return nil, fmt.Errorf("get manifest of flight %s: %w", id, flight.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("get manifest of flight %s: %w", id, err)
	}
	return flight.Decode(b)
}

// Continue creates a checkpoint, unless the checkpoint exists, and reports whether it created the
// checkpoint.
func (f *Flights) Continue(ctx context.Context, id flight.ID, n int, s flight.State) (bool, error) {
	if err := checkID(id); err != nil {
		return false, fmt.Errorf("create checkpoint: %w", err)
	}
	b, err := json.Marshal(s)
	if err != nil {
		return false, fmt.Errorf("create checkpoint: %w", err)
	}
	created, err := f.bucket.create(ctx, checkpointKey(id, n), b)
	if err != nil {
		return false, fmt.Errorf("create checkpoint %d of flight %s: %w", n, id, err)
	}
	return created, nil
}

// Delete removes the manifest and the checkpoints of a flight. A young flight needs one request. An
// old flight needs an additional listing.
func (f *Flights) Delete(ctx context.Context, id flight.ID) error {
	if err := checkID(id); err != nil {
		return fmt.Errorf("delete flight: %w", err)
	}
	keys := []string{manifestKey(id)}
	if f.young(id) {
		for n := 1; n <= youngLegs; n++ {
			keys = append(keys, checkpointKey(id, n))
		}
	} else {
		for o, err := range f.objects(ctx, folder(id)+checkpointStart, "") {
			if err != nil {
				return fmt.Errorf("delete flight %s: %w", id, err)
			}
			keys = append(keys, *o.Key)
		}
	}
	for part := range slices.Chunk(keys, maxDelete) {
		if err := f.bucket.delete(ctx, part...); err != nil {
			return fmt.Errorf("delete flight %s: %w", id, err)
		}
	}
	return nil
}

// young reports whether the flight began less than youngFlight ago, by the time in its id.
func (f *Flights) young(id flight.ID) bool {
	u, err := ulid.ParseStrict(string(id))
	if err != nil {
		return false
	}
	age := f.clk.Now().Sub(ulid.Time(u.Time()))
	return age > -youngFlight && age < youngFlight
}

// objects yields the objects below prefix whose keys sort after the given key. The method ends
// after an error.
func (f *Flights) objects(ctx context.Context, prefix, after string) iter.Seq2[types.Object, error] {
	in := &sdk.ListObjectsV2Input{Bucket: &f.bucket.name, ExpectedBucketOwner: f.bucket.owner, Prefix: &prefix}
	if after != "" {
		in.StartAfter = &after
	}
	return func(yield func(types.Object, error) bool) {
		for pages := sdk.NewListObjectsV2Paginator(f.bucket.api, in); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(types.Object{}, failure(f.bucket.name, err))
				return
			}
			for _, o := range page.Contents {
				if !yield(o, nil) {
					return
				}
			}
		}
	}
}

// List returns flights in the order of their keys, so the oldest flight comes first. The cursor is
// the last flight of the previous page.
func (f *Flights) List(ctx context.Context, cursor string, limit int) ([]flight.Stored, string, error) {
	if limit < 1 {
		return nil, "", fmt.Errorf("list flights: limit %d is not positive", limit)
	}
	after := ""
	if cursor != "" {
		after = folder(flight.ID(cursor)) + "~" // sorts after every object of that flight
	}
	var flights []flight.Stored
	for o, err := range f.objects(ctx, FlightPrefix, after) {
		if err != nil {
			return nil, "", fmt.Errorf("list flights: %w", err)
		}
		id, rest, ok := strings.Cut(strings.TrimPrefix(*o.Key, FlightPrefix), "/")
		if !ok {
			continue // lull did not write this object
		}
		if n := len(flights); n == 0 || flights[n-1].ID != flight.ID(id) {
			if n == limit {
				return flights, string(flights[n-1].ID), nil
			}
			flights = append(flights, flight.Stored{ID: flight.ID(id)})
		}
		s := &flights[len(flights)-1]
		if modified := aws.ToTime(o.LastModified); modified.After(s.Newest) {
			s.Newest = modified
		}
		if number, ok := strings.CutPrefix(rest, checkpointStart); ok {
			n, _ := strconv.Atoi(number) // a name that is not a number counts as no leg
			s.Legs = max(s.Legs, n)
		}
	}
	return flights, "", nil
}
