// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/netip"
	"net/url"
	"strings"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

// Name is the name of this kind of sink in the settings.
const Name = "webhook"

// Settings are the options that only this kind has, under sinks.<name>.webhook.
type Settings struct {
	Webhook Requests `json:"webhook"`
}

// Requests contains the options for requests to the receiver.
type Requests struct {
	// Private says that the receiver may have an address in a private network. Default false.
	Private bool `json:"private"`
	// Parallel is how many requests of one write run at the same time. Default 8.
	Parallel int `json:"parallel"`
}

func init() {
	sink.Register(sink.Kind{
		Kind: setting.Kind{
			Name: Name, Doc: "Your own receiver, by signed HTTP requests.",
			Options: Settings{Requests{Parallel: defaultParallel}},
			Settings: []setting.Setting{
				setting.Flag("webhook.private", "The receiver may have an address in a private network."),
				setting.Count("webhook.parallel", 1, 64, "How many requests of one write are under way at the same time."),
			},
		},
		Schemes: []string{"http", "https"}, Address: "https://hooks.example.org/lull",
		Auths: []sink.AuthKind{sink.AuthKey}, BulkDocuments: 1,
		Capabilities: func(s sink.Settings) sink.Capabilities {
			return sink.Capabilities{Versions: s.Versions != nil && *s.Versions, WriteOnly: true}
		},
		Check: check,
		Open: func(_ context.Context, s sink.Settings, env sink.Environment) (sink.Sink, error) {
			own, _ := s.Options.(Settings)
			return New(Options{
				URL: s.URL, Secrets: env.Key, Versions: s.Capabilities().Versions, BulkDocuments: s.BulkDocuments,
				BulkBytes: int64(s.BulkBytes), Private: own.Webhook.Private, Parallel: own.Webhook.Parallel,
			})
		},
	})
}

// check returns a problem if documents would be sent to the public internet without encryption.
func check(s sink.Settings) []setting.Problem {
	own, _ := s.Options.(Settings)
	if u, err := url.Parse(s.URL); err != nil || u.Scheme != "http" || own.Webhook.Private || isPrivate(u) {
		return nil
	}
	return []setting.Problem{{
		Setting: "url", Value: s.URL, Problem: "would send documents without encryption",
		Fix: "use https, or set webhook.private: true if the receiver is in a private network",
	}}
}

// isPrivate reports whether the host of an address is localhost, or an IP address of this machine
// or a private network. isPrivate does not resolve names.
func isPrivate(u *url.URL) bool {
	host := u.Hostname()
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && (ip.IsLoopback() || ip.IsPrivate())
}
