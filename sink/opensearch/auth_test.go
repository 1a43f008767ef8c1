// SPDX-License-Identifier: Apache-2.0

package opensearch_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/lullhq/lull/internal/aws/sinks"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/sink"
	"github.com/lullhq/lull/sink/opensearch"
)

func TestBasicAuthAsksForThePasswordEachTime(t *testing.T) {
	t.Parallel()
	e := start(t, applied)
	passwords := []string{"of the first question", "first", "rotated"}
	s := e.sink(t, func(o *opensearch.Options) {
		o.Authenticate = sinks.Basic(func(context.Context) (string, string, error) {
			defer func() { passwords = passwords[1:] }()
			return "indexer", passwords[0], nil
		})
	})
	write(t, s, sink.Applied, three()...)
	write(t, s, sink.Applied, three()...)
	for i, want := range []string{"first", "rotated"} {
		user, password, ok := e.seen()[i].BasicAuth()
		if !ok || user != "indexer" || password != want {
			t.Errorf("request %d: %s %s", i, user, password)
		}
	}
}

type credentials struct{ err error }

func (c credentials) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "key", SessionToken: "session"}, c.err
}

// The server computes the signature of the request that arrived, and compares it with the header,
// as AWS does.
func TestSigV4SignsWhatIsSent(t *testing.T) {
	t.Parallel()
	for _, service := range []string{"es", "aoss"} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			e := start(t, func(w http.ResponseWriter, r request) {
				if got, want := r.Header.Get("Authorization"), signature(t, r, service); got != want {
					t.Errorf("%s %s: authorization\n got %s\nwant %s", r.Method, r.URL, got, want)
				}
				if strings.HasPrefix(r.URL.Path, "/search/_bulk") {
					applied(w, r)
					return
				}
				w.Write(
					[]byte(
						`{"version":{"number":"2.19.3"},"indices":[{"name":"test-c","attributes":["open"]}],"hits":{"hits":[]},"docs":[{"found":false}]}`))
			})
			s := e.sink(t, func(o *opensearch.Options) {
				o.URL += "/search/"
				o.Authenticate = sinks.SigV4(credentials{}, "eu-west-2", service)
			})
			write(t, s, sink.Applied, three()...)
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("ping: %v", err)
			}
			if _, err := s.Search(t.Context(), sink.Query{Text: "x", Field: "title", Limit: 1}); err != nil {
				t.Errorf("search: %v", err)
			}
			if _, _, err := s.Get(t.Context(), "c#a/b"); err != nil {
				t.Errorf("get: %v", err)
			}
			e.got(t, 6)
		})
	}
}

func signature(t *testing.T, r request, service string) string {
	t.Helper()
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		t.Errorf("date: %v", err)
	}
	hash := sha256.Sum256([]byte(r.body))
	digest := hex.EncodeToString(hash[:])
	again, err := http.NewRequest(r.Method, "http://"+r.Host+r.URL.RequestURI(), strings.NewReader(r.body))
	if err != nil {
		t.Error(err)
		return ""
	}
	for _, name := range []string{"Content-Type", "X-Amz-Content-Sha256"} {
		if v := r.Header.Get(name); v != "" {
			again.Header.Set(name, v)
		}
	}
	c, _ := credentials{}.Retrieve(t.Context())
	if err := v4.NewSigner().SignHTTP(t.Context(), c, again, digest, service, "eu-west-2", at); err != nil {
		t.Error(err)
	}
	return again.Header.Get("Authorization")
}

// Without credentials, the sink sends nothing, and no document is at fault. The reason must not
// contain the name of the secret.
func TestNoCredentials(t *testing.T) {
	t.Parallel()
	failed := errors.New("secret arn:aws:secret is gone")
	for name, auth := range map[string]func(*http.Request) error{
		"basic": sinks.Basic(func(context.Context) (string, string, error) { return "", "", failed }),
		"sigv4": sinks.SigV4(credentials{failed}, "eu-west-2", "es"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t, applied)
			s := e.sink(t, func(o *opensearch.Options) { o.Authenticate = auth })
			got := s.Write(t.Context(), three())
			quiet(t, got)
			for i, o := range got {
				if want := (sink.Outcome{Kind: sink.Configuration, Reason: "no_credentials"}); o != want {
					t.Errorf("op %d: %+v, want %+v", i, o, want)
				}
			}
			if err := s.Ping(t.Context()); !errors.Is(err, failed) {
				t.Errorf("ping: %v", err)
			}
			e.got(t, 0)
		})
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	one, two := []shard.Collection{"content"}, []shard.Collection{"content", "news"}
	tests := []struct {
		o    opensearch.Options
		want string
	}{
		{opensearch.Options{URL: "https://user:hunter2@host"}, "credentials"},
		{opensearch.Options{URL: "://hunter2"}, "not a URL"},
		{opensearch.Options{URL: "https://example.org/hunter2?"}, "query"},
		{opensearch.Options{URL: "ftp://host"}, "use http"},
		{opensearch.Options{URL: "host:9200"}, "use http"},
		{opensearch.Options{URL: "https://"}, "use http"},
		{opensearch.Options{URL: "https://host?pretty"}, "query"},
		{opensearch.Options{URL: "https://host", Index: "docs"}, "put {collection} into its name"},
		{opensearch.Options{URL: "https://host", Index: "docs", Collections: two}, "put {collection} into its name"},
		{opensearch.Options{URL: "https://host", Index: "{collection}-{collection}"}, "twice"},
		{opensearch.Options{URL: "https://host", Versions: true, Serverless: true}, "no versions"},
	}
	for _, tt := range tests {
		s, err := opensearch.New(tt.o)
		if err == nil {
			s.Close()
			t.Errorf("%+v: no error", tt.o)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v, want one that says %q", tt.o, err, tt.want)
		}
	}
	newSink(t, opensearch.Options{URL: "https://host/path/", Index: "docs", Collections: one})
}
