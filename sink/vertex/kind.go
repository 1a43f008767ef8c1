// SPDX-License-Identifier: Apache-2.0

package vertex

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

// Name is the name of this kind of sink in the settings.
const Name = "vertex"

// Settings are the options that only this kind has, under sinks.<name>.vertex.
type Settings struct {
	Vertex Store `json:"vertex"`
}

// Store says how documents are written, and with which account.
type Store struct {
	// Content is a JSON pointer to the text that is sent as the content of the document, such as
	// /body. Empty means that no content is sent.
	Content string `json:"content"`
	// MimeType is the type of the content. Default "text/html".
	MimeType string `json:"mimeType"`
	// Parallel is how many requests of one write run at the same time. Default 16.
	Parallel int `json:"parallel"`
	// Audience names the provider of a workload identity pool that trusts the function's role.
	// Empty means that there is none.
	Audience string `json:"audience"`
	// ServiceAccount is the e-mail address of the service account as which the role acts. Empty
	// means that the role acts with its own rights.
	ServiceAccount string `json:"serviceAccount"`
}

var (
	pointerPattern  = regexp.MustCompile(`^(/.*)?$`)
	audiencePattern = regexp.MustCompile(
		`^(//iam\.googleapis\.com/projects/[0-9]+/locations/global/workloadIdentityPools/[a-z0-9-]+/providers/[a-z0-9-]+)?$`)
	accountPattern = regexp.MustCompile(`^([a-z0-9-]+@[a-z0-9.-]+\.gserviceaccount\.com)?$`)
	// The address must end with the project and the location of the data stores.
	placePattern = regexp.MustCompile(`/v1/projects/[^/]+/locations/([a-z0-9-]+)$`)
)

func init() {
	sink.Register(sink.Kind{
		Kind: setting.Kind{
			Name: Name, Doc: "Vertex AI Search, of Google Cloud: one document a request.",
			Options: Settings{Store{MimeType: defaultMimeType, Parallel: defaultParallel}},
			Settings: []setting.Setting{
				setting.Text("vertex.content", pointerPattern, "a JSON pointer such as /body, or nothing",
					"Where the content is in a document, for data stores of unstructured documents.").Otherwise("none"),
				setting.Choice("vertex.mimeType", "The MIME type of the content.", "text/html", "text/plain"),
				setting.Count("vertex.parallel", 1, 64, "How many requests of one write are under way at the same time."),
				setting.Text("vertex.audience", audiencePattern,
					"//iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER, or nothing",
					"The provider of a workload identity pool that trusts the function's role.").Otherwise("none"),
				setting.Text("vertex.serviceAccount", accountPattern, "the e-mail address of a service account, or nothing",
					"The service account that the role acts as.").Otherwise("the role's own rights"),
			},
		},
		Schemes: []string{"http", "https"}, Address: "https://" + hostOf("global") + "/v1/projects/PROJECT/locations/global",
		NeedsIndex: true, Auths: []sink.AuthKind{sink.AuthKey}, BulkDocuments: 1,
		Capabilities: func(sink.Settings) sink.Capabilities {
			return sink.Capabilities{MaxDocuments: 1, MinInterval: time.Second}
		},
		Check: check,
		Open:  open,
	})
}

// check returns problems with the address, with the index, and with the ways to get credentials.
func check(s sink.Settings) (found []setting.Problem) {
	own, _ := s.Options.(Settings)
	say := func(name string, value any, problem, fix string) {
		found = append(found, setting.Problem{Setting: name, Value: value, Problem: problem, Fix: fix})
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return nil // another check reports an invalid url
	}
	place := placePattern.FindStringSubmatch(strings.TrimRight(u.Path, "/"))
	if place == nil {
		say("url", s.URL, "does not name the project and location of the data stores",
			"end it with /v1/projects/PROJECT/locations/LOCATION")
	} else if host := hostOf(place[1]); ofGoogle(u) && u.Host != host {
		say("url", s.URL, "is not the address for the location "+place[1], "write https://"+host+u.Path)
	}
	if ofGoogle(u) && u.Scheme != "https" {
		say("url", s.URL, "would send credentials without encryption", "use https")
	}
	if strings.Contains(s.Index, ".") {
		say("index", s.Index, "is not the id of a data store", "leave out the dots")
	}
	if own.Vertex.Audience != "" && s.Auth.Kind == sink.AuthKey {
		say("vertex.audience", own.Vertex.Audience, "is set together with auth.kind: key", "keep one of them")
	}
	if own.Vertex.Audience == "" && own.Vertex.ServiceAccount != "" {
		say("vertex.serviceAccount", own.Vertex.ServiceAccount, "has no effect without vertex.audience",
			"remove it, or set vertex.audience")
	}
	return found
}

func ofGoogle(u *url.URL) bool { return strings.HasSuffix(u.Host, "googleapis.com") }

// hostOf returns the host for the data stores of a location.
func hostOf(location string) string {
	if location == "global" {
		return "discoveryengine.googleapis.com"
	}
	return location + "-discoveryengine.googleapis.com"
}

func open(_ context.Context, s sink.Settings, env sink.Environment) (sink.Sink, error) {
	own, _ := s.Options.(Settings)
	o := Options{
		URL: s.URL, DataStore: s.Index, Collections: env.Collections, Content: own.Vertex.Content,
		MimeType: own.Vertex.MimeType, Parallel: own.Vertex.Parallel,
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil: // New returns the error
	case env.Key != nil:
		o.Authenticate = newKeyed(env.Key).authenticate
	case own.Vertex.Audience != "":
		o.Authenticate, err = federated(tokenContext(), own.Vertex.Audience, own.Vertex.ServiceAccount)
	case ofGoogle(u):
		o.Authenticate = newKeyed(applicationDefault).authenticate
	}
	if err != nil {
		return nil, fmt.Errorf("vertex.audience: %w", err)
	}
	return New(o)
}
