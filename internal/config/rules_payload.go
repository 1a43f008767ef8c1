package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// payloadRules are about what references may point to.
var payloadRules = []Rule{
	{
		"http-host", "A host is named, not numbered: loopback, link-local and private addresses are never fetched.",
		checkHTTPHosts,
	},
	{"bulk-reference", "A payload that travels inside its message fits into a bulk request.", checkBulkReference},
}

// checkHTTPHosts sees names only. The addresses behind a name are checked after resolution (design
// section 13).
func checkHTTPHosts(c *Config, f *checker) {
	for i, host := range c.Payload.HTTPHosts {
		_, err := netip.ParseAddr(host)
		if err == nil || strings.HasSuffix(host, ".localhost") {
			f.fault(fmt.Sprintf("payload.httpHosts[%d]", i), host, "is an address, or this machine",
				"write the host's public name")
		}
	}
}

func checkBulkReference(c *Config, f *checker) {
	eachSink(c, func(_, path string, s Sink) {
		if s.BulkBytes < c.Payload.ReferenceAbove {
			f.fault(path+".bulkBytes", s.BulkBytes, "is less than the payload.referenceAbove of "+
				c.Payload.ReferenceAbove.String(),
				"raise it to at least "+c.Payload.ReferenceAbove.String()+", or lower payload.referenceAbove")
		}
	})
}
