// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// verifyRules check how collections are verified.
var verifyRules = []Rule{{
	"verify",
	"A collection that is verified has one source, which has the setting fetch. lull can read each of its sinks.",
	each((*Config).Verified, checkVerify),
}}

func checkVerify(c *Config, f *checker, name string) {
	path := "collections." + printable(name) + ".verify"
	switch from := c.Writers(name); {
	case len(from) > 1:
		f.fault(path, nil, "cannot be used: the events of several sources may be of this collection ("+
			strings.Join(from, ", ")+")", "let only one source name it: see sources.<name>.collections")
	case len(from) == 0 || c.Sources[from[0]].Fetch == nil:
		f.fault(path, nil, "cannot be used: the collection has no source that lull can ask for a document",
			"add fetch to its source (docs/pull.md), or remove "+path)
	}
	for _, to := range c.SinksFor(name) {
		if c.Sinks[to].Capabilities().WriteOnly {
			f.fault(path, nil, "cannot be used: lull only writes to the sink "+printable(to)+" of the collection",
				"let collections."+printable(name)+".sinks name only sinks that lull can read, or remove "+path)
		}
	}
}
