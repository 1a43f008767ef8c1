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
	"github.com/lullhq/lull/internal/deadletter"
)

// MaxObject is the most bytes read of an object that a message refers to: what one bulk request
// takes.
const MaxObject = 5 << 20

// Objects loads an object of at most [MaxObject] bytes from S3. An error that is an *event.Invalid
// is for good: see [Missing], [TooLarge] and [Refused]. Any other may pass.
type Objects func(ctx context.Context, bucket, key string) ([]byte, error)

// Loader loads references. It is safe for concurrent use.
type Loader struct {
	objects Objects
	hosts   []string
	limit   int64
	client  *http.Client
	pullers map[string]*puller // by source; nil where none has fetch
}

// timeout bounds one request over http, connecting included.
const timeout = 3 * time.Second

// New returns a loader that reads at most limit bytes over http from these hosts, and objects
// through the given function.
func New(objects Objects, hosts []string, limit int64) *Loader {
	return newLoader(objects, hosts, limit, Public)
}

func newLoader(objects Objects, hosts []string, limit int64, allowed func(netip.Addr) bool) *Loader {
	client := Client(allowed)
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
		return nil, invalid("its host may not be referred to: list it under payload.httpHosts")
	}
	return l.get(ctx, u)
}

func (l *Loader) get(ctx context.Context, u *url.URL) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, invalid("the reference is not an address")
	}
	req.Header.Set("Accept", "application/json")
	return Rules{
		Unanswered: unloaded, Judge: judgeReference, Most: l.limit,
		TooLarge: invalid(fmt.Sprintf("it has more than %d bytes", l.limit)),
	}.Ask(l.client, req)
}

// judgeReference says what an answer means for a reference.
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

// unloaded is the error of a reference without an answer. It has no address: the query of a signed
// one is a secret.
func unloaded(err error) error {
	var with *url.Error
	switch {
	case errors.Is(err, ErrForbidden):
		return invalid("its host has an address that is not public")
	case errors.As(err, &with):
		err = with.Err
	}
	return fmt.Errorf("load reference: %w", err)
}

// Missing says that an object is not there: a delete may be on its way.
func Missing() error { return missing("the object is not there") }

// TooLarge says that an object has more than [MaxObject] bytes.
func TooLarge() error { return invalid(fmt.Sprintf("the object has more than %d bytes", MaxObject)) }

// Refused says why an object can never be loaded.
func Refused(problem string) error { return invalid(problem) }

func missing(problem string) *event.Invalid {
	return &event.Invalid{Reason: deadletter.Payload, Field: "dataref", Problem: problem, Missing: true}
}

func invalid(problem string) *event.Invalid {
	return &event.Invalid{Reason: deadletter.Payload, Field: "dataref", Problem: problem}
}

// reserved are ranges of IPv4, and of IPv6's public range, that are not the public internet's,
// beyond those that netip names: this network, shared addresses, protocol assignments, benchmarks,
// documentation, the future, and IPv6 addresses with an IPv4 address inside (Teredo and 6to4).
// Source: IANA's registries of special-purpose addresses.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("3fff::/20"),
}

// publicV6 is all that IANA gives out as public IPv6. What lies outside is refused without being
// named: site-local fec0::/10, and 64:ff9b::/96, which leads to an IPv4 address behind a NAT64.
var publicV6 = netip.MustParsePrefix("2000::/3")

// Public reports whether an address belongs to the public internet.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsGlobalUnicast() && !a.IsPrivate() && (a.Is4() || publicV6.Contains(a)) &&
		!slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) })
}
