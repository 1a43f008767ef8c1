// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lullhq/lull/event"
	"github.com/lullhq/lull/internal/shard"
	"github.com/lullhq/lull/setting"
)

// Fetch says where lull loads the newest state of a source's documents. The events of such a source
// only say that a document changed, and lull does not use their other content. lull loads the state
// once for each burst, when it writes the document (docs/pull.md).
type Fetch struct {
	// URL is the address of one document, such as https://host/path/{id} or
	// s3://bucket/folder/{id}.json. lull replaces {id}, {collection} and {version} with the event's
	// values. URL is required and must contain {id}.
	URL string `json:"url"`
	// Headers says where lull finds the headers of requests.
	Headers Headers `json:"headers"`
	// Timeout is the longest one request may take. Default 1.5s.
	Timeout time.Duration `json:"timeout"`
	// Version is a JSON pointer to the version in the answer. lull does not write an answer whose
	// version is older than the version of the event. Version is required, except if nothing can be
	// compared: for S3, for events without a version, and for versions that are positions in a log.
	Version string `json:"version"`
	// Missing is what happens to an event whose document still does not exist after
	// payload.missingWait. Default "deadLetter".
	Missing Missing `json:"missing"`
	// AllowPrivate names hosts that may have private addresses, and that lull may call without
	// encryption.
	AllowPrivate []string `json:"allowPrivate"`
	// MaxBytes is the most bytes that lull reads of one answer, after decompression. Default 5MB.
	MaxBytes setting.Size `json:"maxBytes"`
}

// Headers names the place where headers are stored, and never contains the headers themselves. The
// place contains a JSON object of names and values.
type Headers struct {
	// SecretARN is the ARN of a secret that contains the headers.
	SecretARN string `json:"secretARN"`
	// Env names an environment variable that contains the headers.
	Env string `json:"env"`
}

// Missing is what happens to an event whose document does not exist.
type Missing string

// The values of Fetch.Missing.
const (
	// MissingDelete deletes the document, with the version of the event.
	MissingDelete Missing = "delete"
	// MissingWait retries the event until retry.deadDeadline.
	MissingWait Missing = "wait"
	// MissingDeadLetter makes the event a dead letter.
	MissingDeadLetter Missing = "deadLetter"
)

// MaxFetch is the largest allowed value of Fetch.MaxBytes, and its default. A bulk request has the
// same limit.
const MaxFetch = 5 * setting.MB

// complete fills in the empty settings.
func (f Fetch) complete() *Fetch {
	f.Timeout = cmp.Or(f.Timeout, 1500*time.Millisecond)
	f.Missing = cmp.Or(f.Missing, MissingDeadLetter)
	f.MaxBytes = cmp.Or(f.MaxBytes, MaxFetch)
	return &f
}

// Unavailable says that a source can deliver no document now: the source is down, slow or busy, or
// refuses lull's credentials. The text of the error quotes neither address nor answer.
type Unavailable struct {
	Problem    string
	RetryAfter time.Duration // the wait that the source asked for, at most an hour; 0 if it asked for none
}

func (u *Unavailable) Error() string { return u.Problem }

const (
	s3Scheme = "s3://"
	idHolder = "{id}"
)

// Bucket returns the place in S3 of a URL with the scheme s3: the bucket, and the prefix that every
// key has. For another scheme, ok is false.
func (f Fetch) Bucket() (bucket, prefix string, ok bool) {
	place, ok := strings.CutPrefix(f.URL, s3Scheme)
	bucket, key, _ := strings.Cut(place, "/")
	prefix, _, _ = strings.Cut(key, "{")
	return bucket, prefix, ok
}

// Host returns the host of a URL with the scheme http or https, in lower case.
func (f Fetch) Host() string {
	u, err := url.Parse(f.sample())
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// Private reports whether the settings name the URL's host as private.
func (f Fetch) Private() bool {
	host := f.Host()
	return slices.ContainsFunc(f.AllowPrivate, func(p string) bool { return strings.EqualFold(p, host) })
}

// sample returns the URL with plain words instead of placeholders.
func (f Fetch) sample() string {
	return strings.NewReplacer(idHolder, "id", "{collection}", "collection", "{version}", "1").Replace(f.URL)
}

// Problems returns the contradictions between the settings of fetch. The bounds of each setting are
// checked elsewhere.
func (f Fetch) Problems(s Settings) []setting.Problem {
	var all []setting.Problem
	add := func(name string, value any, problem, fix string) {
		all = append(all, setting.Problem{Setting: "fetch." + name, Value: value, Problem: problem, Fix: fix})
	}
	const example = "write an address such as https://cms.example.org/content/{id}, or s3://bucket/{collection}/{id}.json"
	sample := f.sample()
	shown, _, _ := strings.Cut(f.URL, "?") // a query may contain a secret key, and faults reach logs
	bucket, prefix, inS3 := f.Bucket()
	u, err := url.Parse(sample)
	_, rest, _ := strings.Cut(f.URL, "://")
	authority, _, _ := strings.Cut(rest, "/")
	switch {
	case f.URL == "":
		add("url", nil, "is missing", example)
		return all
	case strings.ContainsAny(sample, "{}"):
		add("url", shown, "contains braces other than {id}, {collection} and {version}", "remove them")
		return all
	case err != nil || u.Host == "" || !slices.Contains([]string{"https", "http", "s3"}, u.Scheme) ||
		strings.Contains(authority, "{"):
		add("url", nil, "is not an address with https, http or s3 and a fixed host", example)
		return all
	case u.User != nil || u.Fragment != "":
		add("url", nil, "has a user, a password or a fragment", "remove the part from # on, and put credentials into "+
			"fetch.headers")
	case !strings.Contains(f.URL, idHolder):
		add("url", shown, "is the same for every document", "write {id} in place of the document's id")
	case slices.ContainsFunc(strings.Split(u.Path, "/"), isDots):
		add("url", shown, "contains . or .. as a part of its path", "remove these parts from the path")
	case inS3 && (strings.ContainsAny(prefix, "*?$") || u.RawQuery != ""):
		add("url", shown, "contains *, ? or $, which a role's policy cannot name", "write a path without these characters")
	case inS3 && !strings.Contains(bucket, ".") && len(bucket) < 3:
		add("url", shown, "has no bucket", example)
	case u.Scheme == "http" && !f.Private():
		add("url", shown, "would be requested without encryption",
			"write https, or add its host to fetch.allowPrivate")
	}
	if inS3 {
		for _, ignored := range []struct {
			name string
			set  bool
		}{
			{"headers.secretARN", f.Headers.SecretARN != ""},
			{"headers.env", f.Headers.Env != ""},
			{"allowPrivate", len(f.AllowPrivate) > 0},
		} {
			if ignored.set {
				add(ignored.name, nil, "has no effect: objects in S3 are loaded with the function's own credentials",
					"remove it")
			}
		}
	}
	if f.Headers.SecretARN != "" && f.Headers.Env != "" {
		add("headers.env", f.Headers.Env, "cannot be used together with headers.secretARN",
			"remove one of the two")
	}
	kind, _ := Lookup(s.Kind)
	switch {
	case f.Version != "" && s.NoVersion == NoVersionArrival:
		add("version", f.Version, "cannot be compared if noVersion is arrival: the versions are then the times at which "+
			"messages were sent", "remove it, or send versions and write noVersion: refuse")
	case f.Version != "" && s.NoVersion == NoVersionPosition:
		add("version", f.Version, "cannot be compared if noVersion is position: the versions are then positions in a stream",
			"remove it, or send versions and write noVersion: refuse")
	case f.Version == "" && !inS3 && s.NoVersion == NoVersionRefuse && !kind.Versioned && !s.versionIsPosition():
		add("version", nil, "is missing, so an older state from a replica that lags could be written",
			"write the JSON pointer to the version in the answer, such as /version")
	}
	return all
}

// versionIsPosition reports whether the versions of the source are positions in a log. A document
// does not contain its position.
func (s Settings) versionIsPosition() bool { return s.Class == ClassLSN || s.Class == ClassSeq }

func isDots(part string) bool { return part == "." || part == ".." }

// address returns the address of an event's document. Each value from the event is escaped, so that
// a sender cannot change another part of the URL.
func (f Fetch) address(doc event.DocID, version string) (string, *event.Invalid) {
	id := doc.ID()
	if leavesPath(id) {
		return "", payloadInvalid("the document's id %s contains . or .. as a part of a path, which could lead to another "+
			"address",
			event.Quote(id))
	}
	put := escaped
	_, _, inS3 := f.Bucket()
	if inS3 {
		put = func(s string) string { return s } // a key in S3 has no special characters to escape
	}
	ref := strings.NewReplacer(idHolder, put(id), "{collection}", put(string(doc.Collection())),
		"{version}", put(version)).Replace(f.URL)
	if _, key, _ := strings.Cut(strings.TrimPrefix(ref, s3Scheme), "/"); inS3 && len(key) > maxKey {
		return "", payloadInvalid("the key of the document's object has %d bytes, at most %d are allowed", len(key), maxKey)
	}
	return ref, nil
}

// maxKey is the length of the longest key in S3, in bytes.
const maxKey = 1024

// escaped escapes all characters except A to Z, a to z, digits, -, _, . and ~.
func escaped(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// leavesPath reports whether a part of the id is . or .., or becomes . or .. when the id is
// unescaped up to three times. It also reports true if unescaping changes the id a fourth time.
func leavesPath(id string) bool {
	for range 4 {
		if slices.ContainsFunc(strings.FieldsFunc(id, func(r rune) bool { return r == '/' || r == '\\' }), isDots) {
			return true
		}
		next := escapes.ReplaceAllStringFunc(id, func(s string) string {
			one, _ := url.PathUnescape(s) // the pattern matches only valid escapes
			return one
		})
		if next == id {
			return false
		}
		id = next
	}
	return true
}

var escapes = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// fetchedDocument makes the document from the loaded state of an event. It refuses a state that is
// older than the event.
func (r *Rules) fetchedDocument(e event.Event) ([]byte, *event.Invalid) {
	if bad := event.Check(e.Data); bad != nil {
		return nil, payloadInvalid("the loaded content is not a document: %s", bad.Problem)
	}
	if bad := r.checkFresh(e); bad != nil {
		return nil, bad
	}
	doc, bad := r.projection.object(e.Data)
	if bad != nil {
		return nil, payloadInvalid("the loaded content is not a document: %s", bad.Problem)
	}
	return doc, nil
}

// Shown returns the version in a document that was fetched from a source, as the source writes it.
// It is empty if the settings of the source name no version.
func (s *Set) Shown(name, document string) (string, error) {
	src := s.sources[name]
	if src == nil || src.rules.Settings.Fetch == nil || src.rules.Settings.Fetch.Version == "" {
		return "", nil
	}
	_, text, bad := src.rules.shown(document)
	if bad != nil {
		return "", bad
	}
	return text, nil
}

// shown returns the version of a loaded state, and its text.
func (r *Rules) shown(document string) (v shard.Version, text string, bad *event.Invalid) {
	pointer := r.Settings.Fetch.Version
	p, err := ParsePointer(pointer)
	if err != nil {
		return v, "", payloadInvalid("the version of the event cannot be compared: %s", err)
	}
	whole := gjson.Parse(document)
	in := p.In(whole)
	switch {
	case in.Type == gjson.Null && whole.IsObject(): // the answer may be a maintenance page, and not the document
		return v, "", staleInvalid("the loaded content has no version at %s: the source may be under maintenance", pointer)
	case in.Type != gjson.String && in.Type != gjson.Number:
		return v, "", payloadInvalid("the version in the loaded content, at %s, is %s", pointer, TypeName(in))
	}
	text = event.Text(in)
	if v, err = parse(r.class, pointer, text); err != nil {
		return v, "", payloadInvalid("the version in the loaded content, at %s: %s", pointer, err)
	}
	return v, text, nil
}

// checkFresh compares the version of the loaded state with the version of the event.
func (r *Rules) checkFresh(e event.Event) *event.Invalid {
	if r.Settings.Fetch.Version == "" {
		return nil
	}
	parts, err := e.Key.Parts()
	if err != nil {
		return payloadInvalid("the version of the event cannot be compared: %s", err)
	}
	shown, text, bad := r.shown(e.Data)
	if bad != nil {
		return bad
	}
	if shown.Compare(parts.Version) < 0 {
		return staleInvalid("the loaded content has version %s, which is older than the event's", event.Quote(text))
	}
	return nil
}

// staleInvalid returns an Invalid for an answer that is too old. A later request may return a newer
// answer.
func staleInvalid(format string, args ...any) *event.Invalid {
	bad := payloadInvalid(format, args...)
	bad.Reason, bad.Stale = event.StaleSource, true
	return bad
}

func payloadInvalid(format string, args ...any) *event.Invalid {
	return &event.Invalid{Reason: event.Payload, Field: "fetch", Problem: fmt.Sprintf(format, args...)}
}
