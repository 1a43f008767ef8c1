// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lullhq/lull/internal/aws/awstest"
)

func TestABodyHasOnePlace(t *testing.T) {
	t.Parallel()
	var puts []string
	status := http.StatusOK
	cfg := awstest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		puts = append(puts, r.Method+" "+r.URL.Path)
		w.WriteHeader(status)
	}))
	p := NewPayloads(cfg, "bodies", "rabbit/")
	const digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // the SHA-256 of x
	for range 2 {
		bucket, key, err := p.Put(awstest.Context(t), []byte("x"))
		if bucket != "bodies" || key != "rabbit/"+digest || err != nil {
			t.Errorf("got %s, %s, %v", bucket, key, err)
		}
	}
	for _, put := range puts {
		if !strings.HasPrefix(put, "PUT /bodies/rabbit/"+digest) {
			t.Errorf("got %s", put)
		}
	}
	if status = http.StatusForbidden; len(puts) != 2 {
		t.Errorf("got %q", puts)
	}
	if _, _, err := p.Put(awstest.Context(t), []byte("x")); err == nil {
		t.Error("Put returned no error, although S3 refused the body")
	}
}
