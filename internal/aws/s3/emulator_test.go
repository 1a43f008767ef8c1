// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/aws/client"
	"github.com/lullhq/lull/internal/pipeline/archive"
	"github.com/lullhq/lull/internal/pipeline/archive/archivetest"
	"github.com/lullhq/lull/internal/seam/backoff"
	"github.com/lullhq/lull/internal/seam/clock"
	"github.com/lullhq/lull/internal/seam/flight"
	"github.com/lullhq/lull/internal/seam/flight/flighttest"
)

// create creates a bucket at the emulator. The test does not delete the bucket: an emulator forgets
// it when it stops.
func create(t *testing.T, cfg aws.Config) *Bucket {
	t.Helper()
	api := sdk.NewFromConfig(client.Plain(cfg), func(o *sdk.Options) { o.UsePathStyle = true })
	name := awstest.Name(t)
	if _, err := api.CreateBucket(awstest.Context(t), &sdk.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatalf("create bucket: %v", err)
	}
	return New(cfg, name)
}

func TestTheBucketKeepsThePromisesOfAFlightStore(t *testing.T) {
	t.Parallel()
	bucket := create(t, awstest.Emulator(t))
	flighttest.Run(t, func(*testing.T) flight.Store { return NewFlights(bucket) })
}

func TestTheBucketKeepsThePromisesOfAnArchive(t *testing.T) {
	t.Parallel()
	bucket := create(t, awstest.Emulator(t))
	archivetest.Run(t, func(*testing.T) archive.Store { return NewArchive(bucket) })
}

// The bucket of a stack keeps earlier versions of its objects. When data is forgotten, no earlier
// version of that data may remain.
func TestOfWhatIsForgottenNoFormerVersionStays(t *testing.T) {
	t.Parallel()
	ctx := awstest.Context(t)
	bucket := create(t, awstest.Emulator(t))
	_, err := bucket.api.PutBucketVersioning(ctx, &sdk.PutBucketVersioningInput{
		Bucket:                  &bucket.name,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if err != nil {
		t.Fatal(err)
	}
	a := NewArchive(bucket)
	gone, kept := archive.Name("2026/11/22/10/0000.000_live_search_1_A"), archive.Name("2026/11/22/10/0000.000_live_search_1_AB")
	for range 3 {
		for _, n := range []archive.Name{gone, kept} {
			if err := a.Put(ctx, n, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	versions := func(n archive.Name) (all int) {
		out, err := bucket.api.ListObjectVersions(ctx, &sdk.ListObjectVersionsInput{
			Bucket: &bucket.name, Prefix: aws.String(ArchivePrefix + string(n)),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range out.Versions {
			if *v.Key == ArchivePrefix+string(n) {
				all++
			}
		}
		return all + len(out.DeleteMarkers)
	}
	if err := a.Rewrite(ctx, gone, []byte("without it")); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Get(ctx, gone); err != nil || string(got) != "without it" || versions(gone) != 1 {
		t.Errorf("got %q, %v in %d versions, want the new text in one version", got, err, versions(gone))
	}
	if err := a.Remove(ctx, gone); err != nil || versions(gone) != 0 || versions(kept) != 3 {
		t.Errorf("after Remove, got %d versions (%v) and %d versions of another object, want 0 and 3", versions(gone), err, versions(kept))
	}
}

// The objects of an old flight are deleted by listing them. All flights of the suite are young, so
// this test makes the store treat them as old.
func TestOldFlightsKeepThePromisesToo(t *testing.T) {
	t.Parallel()
	bucket := create(t, awstest.Emulator(t))
	flighttest.Run(t, func(*testing.T) flight.Store {
		f := NewFlights(bucket)
		f.clk = clock.Skewed{Clock: clock.System{}, By: time.Hour}
		return f
	})
}

func TestAnOldFlightGoesWithAllItsLegs(t *testing.T) {
	t.Parallel()
	ctx := awstest.Context(t)
	f := NewFlights(create(t, awstest.Emulator(t)))
	f.clk = clock.Skewed{Clock: clock.System{}, By: time.Hour}
	id, other := flight.ID(ulid.Make().String()), flight.ID(ulid.Make().String())
	for n := 1; n <= youngLegs+3; n++ {
		for _, id := range []flight.ID{id, other} {
			if created, err := f.Continue(ctx, id, n, flight.State{Flight: id}); err != nil || !created {
				t.Fatalf("Continue: %v, %v", created, err)
			}
		}
	}
	if err := f.Delete(ctx, id); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	left, _, err := f.List(ctx, "", 10)
	if err != nil || len(left) != 1 || left[0].ID != other || left[0].Legs != youngLegs+3 {
		t.Errorf("got %v, %v, want only the other flight, with all its legs", left, err)
	}
}

func TestAMissingBucketSaysSo(t *testing.T) {
	t.Parallel()
	ctx := awstest.Context(t)
	b := New(awstest.Emulator(t), awstest.Name(t))
	f, id := NewFlights(b), flight.ID(ulid.Make().String())
	_, getErr := f.Get(ctx, id)
	_, continueErr := f.Continue(ctx, id, 1, flight.State{})
	_, _, listErr := f.List(ctx, "", 10)
	_, _, _, bodyErr := NewBodies(b, DeadPrefix).Get(ctx, "x")
	for what, err := range map[string]error{
		"put": f.Put(ctx, &flight.Manifest{Flight: id}), "get": getErr, "continue": continueErr,
		"delete": f.Delete(ctx, id), "list": listErr, "body": bodyErr,
	} {
		if err == nil || !backoff.Final(err) || errors.Is(err, flight.ErrNotFound) {
			t.Errorf("%s: got %v, want a permanent error", what, err)
		}
	}
}
