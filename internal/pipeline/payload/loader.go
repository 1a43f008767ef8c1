// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/seam/deadletter"
	"github.com/lullhq/lull/internal/seam/outbound"
)

// MaxObject is the largest number of bytes of an object that is read: the size of a bulk request.
const MaxObject = 5 << 20

// Objects loads an object of at most [MaxObject] bytes from S3. An *event.Invalid is a permanent
// error: see [Missing], [TooLarge] and [Refused]. Any other error may be temporary.
type Objects func(ctx context.Context, bucket, key string) ([]byte, error)

// Loader loads the data that references name. It is safe for concurrent use.
type Loader struct {
	objects Objects
	hosts   []string
	limit   int64
	client  *http.Client
	pullers map[string]*puller // by name of the source; nil if no source has the setting fetch
}

// timeout bounds one HTTP request, including the time to connect.
const timeout = 3 * time.Second

// New returns a loader. It reads at most limit bytes over HTTP, and only from the given hosts. It
// reads objects with the given function.
func New(objects Objects, hosts []string, limit int64) *Loader {
	return newLoader(objects, hosts, limit, outbound.Public)
}

func newLoader(objects Objects, hosts []string, limit int64, allowed func(netip.Addr) bool) *Loader {
	client := outbound.Client(allowed)
	client.Timeout = timeout
	return &Loader{objects: objects, hosts: hosts, limit: limit, client: client}
}

// Load loads s3://bucket/key or https://host/path.
func (l *Loader) Load(ctx context.Context, ref string) ([]byte, error) {
	if place, ok := strings.CutPrefix(ref, "s3://"); ok {
		bucket, key, _ := strings.Cut(place, "/")
		if bucket == "" || key == "" {
			return nil, invalid("the reference is incomplete")
		}
		return l.objects(ctx, bucket, key)
	}
	u, err := url.Parse(ref)
	if err != nil || u.Scheme != "https" || u.User != nil || u.Host == "" {
		return nil, invalid("the reference is neither s3 nor https")
	}
	if !slices.Contains(l.hosts, strings.ToLower(u.Hostname())) {
		return nil, invalid("the host of the reference is not allowed: list it under payload.httpHosts")
	}
	return l.get(ctx, u)
}

func (l *Loader) get(ctx context.Context, u *url.URL) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, invalid("the reference is not an address")
	}
	req.Header.Set("Accept", "application/json")
	return outbound.Rules{
		Unanswered: unloaded, Judge: judgeReference, Most: l.limit,
		TooLarge: invalid(fmt.Sprintf("the data has more than %d bytes", l.limit)),
	}.Ask(l.client, req)
}

// judgeReference returns the error of an HTTP answer to the request for a reference.
func judgeReference(res *http.Response) error {
	status := res.StatusCode
	says := fmt.Sprintf("the host answered %d", status)
	switch {
	case status == http.StatusOK:
		return nil
	case status >= 300 && status < 400:
		return invalid(says + ": redirects are not followed")
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests,
		status >= 500:
		return errors.New("load reference: " + says)
	case status == http.StatusNotFound, status == http.StatusGone:
		return missing(says)
	}
	return invalid(says)
}

// unloaded returns the error of a reference that got no answer. It omits the address, because the
// query of a signed address is a secret.
func unloaded(err error) error {
	var with *url.Error
	switch {
	case errors.Is(err, outbound.ErrForbidden):
		return invalid("the host of the reference has an address that is not public")
	case errors.As(err, &with):
		err = with.Err
	}
	return fmt.Errorf("load reference: %w", err)
}

// Missing returns the error of an object that does not exist. A delete of the document may follow.
func Missing() error { return missing("the object is not there") }

// TooLarge returns the error of an object with more than [MaxObject] bytes.
func TooLarge() error { return invalid(fmt.Sprintf("the object has more than %d bytes", MaxObject)) }

// Refused returns the error of an object that can never be loaded, with the reason.
func Refused(problem string) error { return invalid(problem) }

func missing(problem string) *event.Invalid {
	return &event.Invalid{Reason: deadletter.Payload, Field: "dataref", Problem: problem, Missing: true}
}

func invalid(problem string) *event.Invalid {
	return &event.Invalid{Reason: deadletter.Payload, Field: "dataref", Problem: problem}
}
