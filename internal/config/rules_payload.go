// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/lullhq/lull/sink"
)

// payloadRules check payloads and the places that references may point to.
var payloadRules = []Rule{
	{
		"http-host", "A host is a name, not an address.",
		checkHTTPHosts,
	},
	{"tracing", "Spans go to a collector on the same machine, or over an encrypted connection.", checkTracing},
	{
		"bulk-reference",
		"A payload inside a message fits into a bulk request.",
		each((*Config).namedSinks, checkBulkReference),
	},
}

// checkHTTPHosts checks only names. lull checks the addresses of a name after it resolved the name
// (design section 13).
func checkHTTPHosts(c *Config, f *checker) {
	for i, host := range c.Payload.HTTPHosts {
		_, err := netip.ParseAddr(host)
		if err == nil || strings.HasSuffix(host, ".localhost") {
			f.fault(fmt.Sprintf("payload.httpHosts[%d]", i), host, "is an address, or this machine",
				"write the host's public name")
		}
	}
}

// checkTracing refuses an address to which ids would be sent unencrypted, or that would put secrets
// into logs.
func checkTracing(c *Config, f *checker) {
	at := c.Tracing.Endpoint
	if at == "" {
		return
	}
	u, err := url.Parse(at)
	switch {
	// even an empty query would swallow the path of the spans
	case strings.ContainsAny(at, "?#") || u != nil && u.User != nil:
		f.fault("tracing.endpoint", nil, "has a user, query or fragment, which would reach logs",
			"remove what follows the path, and give the credentials to a collector on the same machine")
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && (u.Scheme != "http" || !sink.Loopback(u.Hostname())):
		f.fault("tracing.endpoint", at, "is not an address with https, or http of this machine",
			"write http://localhost:4318 for a collector in a Lambda layer, or its https address")
	}
}

func checkBulkReference(c *Config, f *checker, s namedSink) {
	if s.BulkBytes < c.Payload.ReferenceAbove {
		f.fault(s.path+".bulkBytes", s.BulkBytes, "is less than the payload.referenceAbove of "+
			c.Payload.ReferenceAbove.String(),
			"raise it to at least "+c.Payload.ReferenceAbove.String()+", or lower payload.referenceAbove")
	}
}
