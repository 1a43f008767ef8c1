// SPDX-License-Identifier: Apache-2.0

package ndjson_test

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"example.org/outoftree/ndjson"
	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/sinktest"
)

// The sink passes lull's test suite, with the options for a sink that has no versions and no
// search.
func TestSink(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, sinktest.Options{
		New: func(t *testing.T) sinktest.Sink {
			return ndjson.New(serve(t, &fake{}), "documents/", ndjson.Options{Suffix: ".ndjson"})
		},
		Capabilities: sink.Capabilities{WriteOnly: true},
	})
}

// fake is a fake of S3 with one bucket.
type fake struct {
	mu      sync.Mutex
	objects map[string][]byte
	status  int // the status with which a PUT fails, or 0 if it succeeds
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/lake/")
	switch {
	case r.Method == http.MethodPut && f.status != 0:
		w.WriteHeader(f.status)
	case r.Method == http.MethodPut:
		if f.objects == nil {
			f.objects = map[string][]byte{}
		}
		f.objects[key], _ = io.ReadAll(r.Body)
	case r.URL.Query().Has("list-type"):
		type object struct{ Key string }
		var list struct {
			XMLName  xml.Name `xml:"ListBucketResult"`
			Contents []object
		}
		for name := range f.objects {
			if strings.HasPrefix(name, r.URL.Query().Get("prefix")) {
				list.Contents = append(list.Contents, object{name})
			}
		}
		slices.SortFunc(list.Contents, func(a, b object) int { return strings.Compare(a.Key, b.Key) })
		_ = xml.NewEncoder(w).Encode(list)
	default:
		_, _ = w.Write(f.objects[key])
	}
}

func serve(t *testing.T, f *fake) *ndjson.Bucket {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	client := s3.New(s3.Options{
		BaseEndpoint: &server.URL, UsePathStyle: true, Region: "eu-west-1", RetryMaxAttempts: 1,
		Credentials:                credentials.NewStaticCredentialsProvider("AKID", "key", ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	})
	return ndjson.NewBucket(client, "lake")
}

// If S3 refuses a file, the file was not written, and lull may send it again. After any other
// error, the outcome is unknown.
func TestAllDocumentsOfAFileHaveOneOutcome(t *testing.T) {
	t.Parallel()
	ops := []sink.Op{
		{Doc: "content#a", Kind: event.Put, Document: []byte(`{"n":1}`)},
		{Doc: "content#b", Kind: event.Put, Document: []byte(`"poison"`)},
		{Doc: "content#c", Kind: event.Delete},
	}
	for status, want := range map[int]sink.OutcomeKind{
		0: sink.Applied, http.StatusForbidden: sink.Throttled, http.StatusBadGateway: sink.Unknown,
	} {
		s := ndjson.New(serve(t, &fake{status: status}), "", ndjson.Options{})
		got := s.Write(t.Context(), ops)
		if got[0].Kind != want || got[1].Kind != sink.Rejected || got[2].Kind != want {
			t.Errorf("status %d: got %+v, want %s beside the rejected one", status, got, want)
		}
	}
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	bucket := serve(t, &fake{objects: map[string][]byte{"documents/1.ndjson": []byte("no JSON\n")}})
	err := ndjson.New(bucket, "documents/", ndjson.Options{}).All(t.Context(), func(sink.Stored) error {
		return errors.New("there is no document")
	})
	if err == nil || !strings.Contains(err.Error(), "documents/1.ndjson") {
		t.Errorf("got %v, want the name of the file", err)
	}
}

func TestTheKindIsRegistered(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	kind, ok := sink.Lookup(ndjson.Name)
	if !ok || !kind.Deployable() {
		t.Fatalf("got %+v, want a kind that can be deployed", kind)
	}
	settings := sink.Settings{
		Kind: ndjson.Name, URL: "s3://lake/documents", Auth: sink.Auth{Kind: sink.AuthNone}, Options: kind.Options,
	}
	opened, err := kind.Open(t.Context(), settings, sink.Environment{Stack: "lull", Name: "lake"})
	if s, is := opened.(*ndjson.Sink); err != nil || !is || s.Suffix != ".ndjson" {
		t.Errorf("got %+v and %v, want the default suffix", opened, err)
	}
	if can := settings.Capabilities(); can.Versions || can.ApplyDelay != sink.DefaultApplyDelay {
		t.Errorf("got %+v, want a sink without versions", can)
	}
	settings.Auth.Kind = sink.AuthBasic
	if got := kind.Check(settings); len(got) != 1 || got[0].Setting != "auth.kind" {
		t.Errorf("got %+v, want auth.kind refused", got)
	}
}
