// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/lullhq/lull/internal/aws/awstest"
	"github.com/lullhq/lull/internal/seam/flight"
)

// Each request to the bucket of the stack names the account that must own the bucket. A request to
// a bucket of the user names no account, because that bucket may belong to another account.
func TestEachCallNamesTheBucketsOwner(t *testing.T) {
	t.Parallel()
	const own = "content-444455556666-111122223333-us-gov-west-1"
	for _, name := range []string{own, "lull-flights"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := map[string]bool{}
			b := New(awstest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				what := r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("If-None-Match")
				seen[r.Method+" "+strings.SplitN(r.URL.RawQuery, "=", 2)[0]] = true
				want := ""
				if strings.HasPrefix(r.URL.Path, "/"+own) {
					want = "111122223333"
				}
				if got := r.Header.Get("X-Amz-Expected-Bucket-Owner"); got != want {
					t.Errorf("%s names the owner %q, want %q", what, got, want)
				}
				if r.Method == http.MethodGet && r.URL.Query().Has("versions") {
					_, _ = io.WriteString(w, "<ListVersionsResult><Version><Key>archive/a</Key><VersionId>1</VersionId></Version>"+
						"</ListVersionsResult>")
				} else if r.Method == http.MethodPost || r.URL.Query().Has("list-type") {
					_, _ = io.WriteString(w, "<Result></Result>")
				}
			})), name)
			flights, bodies, archive, ctx := NewFlights(b), NewBodies(b, DeadPrefix), NewArchive(b), t.Context()
			young := flight.ID(ulid.Make().String())
			old := flight.ID(ulid.MustNew(ulid.Timestamp(time.Now().Add(-time.Hour)), ulid.DefaultEntropy()).String())
			// All answers are empty, because the test checks only the requests.
			_ = flights.Put(ctx, &flight.Manifest{Flight: young})
			_, _ = flights.Get(ctx, young)
			_, _ = flights.Continue(ctx, young, 1, flight.State{})
			_ = flights.Delete(ctx, young)
			_ = flights.Delete(ctx, old)
			_, _, _ = flights.List(ctx, "", 10)
			_ = bodies.Put(ctx, "id", "body", nil)
			_, _, _, _ = bodies.Get(ctx, "id")
			_ = bodies.Delete(ctx, "id")
			_ = archive.Put(ctx, "a", nil)
			_, _ = archive.Get(ctx, "a")
			_, _, _ = archive.List(ctx, "", "z", 10)
			_ = archive.Remove(ctx, "a")
			_ = archive.Rewrite(ctx, "a", nil)
			for _, bucket := range []string{name, "bodies-777788889999-eu-west-1"} {
				_, _ = b.Load(ctx, bucket, "k")
				if r, err := b.Open(ctx, bucket, "k", "", 0); err == nil {
					_ = r.Close()
				}
			}
			for _, call := range []string{"PUT x-id", "GET x-id", "GET list-type", "GET prefix", "POST delete"} {
				if !seen[call] {
					t.Errorf("no request is %s; the requests are %v", call, seen)
				}
			}
		})
	}
}

// A call that someone adds later must name the owner of the bucket as well.
func TestEveryRequestOfThisPackageSetsTheOwner(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, call := range regexp.MustCompile(`(?s)&sdk\.\w+Input\{[^}]*`).FindAllString(string(text), -1) {
			if calls++; !strings.Contains(call, "ExpectedBucketOwner:") {
				t.Errorf("%s: %s does not set ExpectedBucketOwner", file, call)
			}
		}
	}
	if calls < 9 {
		t.Errorf("found only %d calls, want at least 9: the test looks in the wrong place", calls)
	}
}
