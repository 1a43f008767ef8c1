// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/sink"
)

// sinkRules check the settings of sinks.
var sinkRules = []Rule{
	{
		"sink-url", "A sink outside the process has an address without a password; the other kinds have no address.",
		each((*Config).linkedSinks, checkSinkURL),
	},
	{
		"sink-auth",
		"Each kind of authentication has the settings that it needs, and no others; passwords are sent over encrypted " +
			"connections.",
		each((*Config).namedSinks, checkSinkAuth),
	},
	{
		"sink-kind",
		"The options of a sink's kind fit its other settings, and no request has more documents than the kind can " +
			"send.",
		each((*Config).linkedSinks, checkSinkKind),
	},
	{
		"sink-versions", "Only a sink that can compare versions has versions: true. A serverless collection cannot.",
		each((*Config).linkedSinks, checkSinkVersions),
	},
	{
		"sink-apply-delay",
		"A sink without versions may apply a request after lull has closed the connection: the lease must cover " +
			"that.", each((*Config).namedSinks, checkApplyDelay),
	},
	{
		"sink-index", "Two collections in one index would overwrite each other's documents under the same id.",
		each((*Config).namedSinks, checkSinkIndex),
	},
	{
		"sink-ceiling",
		"maxDocumentsPerSecond is counted in the table, so lull may not write without the table.",
		each((*Config).namedSinks, checkCeiling),
	},
	{
		"sink-concurrency", "The reservations of all sinks leave 100 of the account's 1,000 invocations to other functions.",
		checkSinkConcurrency,
	},
	{
		"sink-interval", "If an engine limits how often a document is written, minInterval is at least that limit.",
		each((*Config).namedSinks, checkInterval),
	},
	{
		"sink-unchanged",
		"With unchanged: keep, lull may not write without the row, and the sink can distinguish its index from " +
			"one that was created again, or the operator names it.",
		checkUnchanged,
	},
}

func checkCeiling(c *Config, f *checker, s namedSink) {
	if s.MaxDocumentsPerSecond != nil && c.TableOutage == TableOutageOpen {
		f.fault(s.path+".maxDocumentsPerSecond", *s.MaxDocumentsPerSecond,
			"cannot be used with tableOutage: open, which writes without counting in the table",
			"remove it, or set tableOutage to closed")
	}
}

func checkSinkConcurrency(c *Config, f *checker) {
	all, last := 0, ""
	for _, s := range c.namedSinks() {
		if s.MaxConcurrency != nil {
			all, last = all+*s.MaxConcurrency, s.path
		}
	}
	if most := accountConcurrency - unreserved; all > most {
		f.fault(last+".maxConcurrency", all, fmt.Sprintf("of all sinks together is more than the %d that may be reserved",
			most), "lower one of them")
	}
}

// checkInterval checks that minInterval of each collection respects the engine. Some engines limit
// how often one document may be written.
func checkInterval(c *Config, f *checker, s namedSink) {
	least := s.Capabilities().MinInterval
	for _, t := range c.expected(s.name) {
		if t.MinInterval < least {
			f.fault(t.minInterval(), t.MinInterval, "is less than the "+words(least)+" that a sink of the kind "+s.Kind+
				" needs between two writes of one document",
				"raise it to at least "+words(least))
		}
	}
}

// checkUnchanged allows keep only if lull writes nothing without the row, and if something names
// the sink's index: the sink, which notices that the index was deleted and created again, or the
// operator.
func checkUnchanged(c *Config, f *checker) {
	refuse := func(path, name string, s Sink) {
		switch {
		case c.TableOutage == TableOutageOpen:
			f.fault(path, string(sink.Keep), "cannot be used with tableOutage: open, which writes without the row",
				"write write, or set tableOutage to closed")
		case !s.Capabilities().Generation && s.Generation == "":
			f.fault(path, string(sink.Keep), "needs a sink that can distinguish its index from another one of that name, and "+
				printable(s.Kind)+", with these settings, cannot",
				"write write, or set sinks."+printable(name)+".generation to a text that you change whenever the index is "+
					"emptied or restored, or another program has written to it")
		}
	}
	for _, s := range c.namedSinks() {
		if s.linked && s.Unchanged == sink.Keep {
			refuse(s.path+".unchanged", s.name, s.Sink)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Collections)) {
		own := c.Collections[name].Unchanged
		for _, to := range c.SinksFor(name) {
			s := c.Sinks[to]
			if _, ok := sink.Lookup(s.Kind); ok && own != nil && *own == sink.Keep && s.Unchanged != sink.Keep {
				refuse("collections."+printable(name)+".unchanged", to, s)
			}
		}
	}
}

// namedSink is a sink with its name and the path of its setting. It also has the description of its
// kind, if this program links the kind.
type namedSink struct {
	Sink
	name, path string
	kind       sink.Kind
	linked     bool
}

// namedSinks returns every sink, by name.
func (c *Config) namedSinks() []namedSink {
	var all []namedSink
	for _, name := range slices.Sorted(maps.Keys(c.Sinks)) {
		kind, linked := sink.Lookup(c.Sinks[name].Kind)
		all = append(all, namedSink{c.Sinks[name], name, "sinks." + printable(name), kind, linked})
	}
	return all
}

// linkedSinks returns the sinks whose kind is registered in this program.
func (c *Config) linkedSinks() []namedSink {
	return slices.DeleteFunc(c.namedSinks(), func(s namedSink) bool { return !s.linked })
}

// checkSinkURL refuses parts of an address that lull would silently ignore, and passwords, which
// would reach logs.
func checkSinkURL(_ *Config, f *checker, s namedSink) {
	fix := "write an address such as " + s.kind.Example()
	u, err := url.Parse(s.URL)
	switch {
	case !s.kind.Deployable() && s.URL == "":
	case !s.kind.Deployable():
		f.fault(s.path+".url", s.URL, "has no effect: the kind "+s.Kind+" lives in the process",
			"remove it, or set "+s.path+".kind to "+deployable())
	case s.URL == "":
		f.fault(s.path+".url", nil, "is missing", fix)
	case err != nil || u.Host == "" || !slices.Contains(s.kind.Schemes, u.Scheme):
		f.fault(s.path+".url", s.URL, "is not an address with "+strings.Join(s.kind.Schemes, " or "), fix)
	case u.User != nil:
		f.fault(s.path+".url", s.URL, "has a user or password in it, which would reach logs",
			"remove them and use "+s.path+".auth with kind: basic")
	case u.RawQuery != "" || u.Fragment != "":
		f.fault(s.path+".url", s.URL, "has a query or fragment, which lull would ignore", "remove what follows the path")
	}
}

// checkSinkAuth checks that auth has the settings that its kind needs, and no others. It checks
// them in the order of lull.yaml.
func checkSinkAuth(_ *Config, f *checker, s namedSink) {
	takes := s.kind.Authentications()
	switch {
	case !s.linked || s.Auth.Kind == AuthNone:
	case !s.kind.Deployable():
		f.fault(s.path+".auth.kind", string(s.Auth.Kind), "has no effect: the kind "+s.Kind+" lives in the process",
			"write none")
	case !slices.Contains(takes, s.Auth.Kind):
		f.fault(s.path+".auth.kind", string(s.Auth.Kind), "is not for a sink of the kind "+s.Kind,
			fmt.Sprintf("write one of none, %s", join(takes)))
	}
	a, auth := s.Auth, s.path+".auth"
	for _, o := range []struct {
		name, value string
		kinds       []AuthKind
	}{
		{"secretARN", a.SecretARN, []AuthKind{AuthBasic, AuthKey}},
		{"userEnv", a.UserEnv, []AuthKind{AuthBasic}},
		{"passwordEnv", a.PasswordEnv, []AuthKind{AuthBasic}},
		{"keyEnv", a.KeyEnv, []AuthKind{AuthKey}},
		{"region", a.Region, []AuthKind{AuthSigV4}},
		{"service", a.Service, []AuthKind{AuthSigV4}},
	} {
		if !slices.Contains(o.kinds, a.Kind) {
			f.ignored(auth, o.name, o.value, join(o.kinds))
		}
	}
	switch a.Kind {
	case AuthBasic:
		checkBasic(f, auth, s.Sink)
	case AuthKey:
		checkKey(f, auth, a)
	}
}

// checkBasic requires the password in exactly one place: a secret, or a pair of environment
// variables.
func checkBasic(f *checker, auth string, s Sink) {
	a := s.Auth
	env := a.UserEnv != "" || a.PasswordEnv != ""
	switch {
	case a.SecretARN != "" && env:
		f.fault(auth+".secretARN", a.SecretARN, "is set together with userEnv or passwordEnv",
			"keep the secret or the two variables")
	case a.SecretARN == "" && !env:
		f.fault(auth+".secretARN", nil, "is missing", "write the ARN of the secret, or both "+auth+".userEnv and "+auth+
			".passwordEnv")
	case a.SecretARN == "" && a.UserEnv == "":
		f.fault(auth+".userEnv", nil, "is missing, and passwordEnv is set",
			"write the name of the variable that holds the user")
	case a.SecretARN == "" && a.PasswordEnv == "":
		f.fault(auth+".passwordEnv", nil, "is missing, and userEnv is set",
			"write the name of the variable that holds the password")
	}
	if u, err := url.Parse(s.URL); err == nil && u.Scheme == "http" && !sink.Loopback(u.Hostname()) {
		f.fault(auth+".kind", string(a.Kind), "would send the password without encryption", "use https in the sink's url")
	}
}

// checkKey requires the key in exactly one place: a secret, or an environment variable.
func checkKey(f *checker, auth string, a Auth) {
	switch {
	case a.SecretARN == "" && a.KeyEnv == "":
		f.fault(auth+".secretARN", nil, "is missing", "write the ARN of the secret that holds the key, or "+auth+".keyEnv")
	case a.SecretARN != "" && a.KeyEnv != "":
		f.fault(auth+".secretARN", a.SecretARN, "is set together with keyEnv", "keep the secret or the variable")
	}
}

func join(kinds []AuthKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, " or ")
}

func checkSinkKind(_ *Config, f *checker, s namedSink) {
	checkOptions(f, s.path, s.Sink, s.Options, s.kind.Kind, s.kind.Check)
	if most := s.Capabilities().MaxDocuments; most > 0 && s.BulkDocuments > most {
		f.fault(s.path+".bulkDocuments", s.BulkDocuments,
			fmt.Sprintf("is more than a request of the kind %s can have", s.Kind), fmt.Sprintf("write %d, or remove it", most))
	}
}

func checkSinkVersions(_ *Config, f *checker, s namedSink) {
	if s.Versions != nil && *s.Versions && !s.Capabilities().Versions {
		f.fault(s.path+".versions", true, "cannot be relied on: the sink, with these settings, cannot compare versions",
			"remove it: lull treats the sink as one without versions")
	}
}

// checkApplyDelay checks a safety-critical number: if a lease is shorter than a write, a document
// can be lost silently (design section 8).
func checkApplyDelay(_ *Config, f *checker, s namedSink) {
	if can := s.Capabilities(); !can.Versions && can.ApplyDelay < minApplyDelay {
		f.fault(s.path+".applyDelay", can.ApplyDelay,
			"is too short for a sink without versions: a write that is applied after the lease can lose a document without "+
				"an error",
			"remove it for "+setting.FormatDuration(sink.DefaultApplyDelay)+", or raise it to at least "+
				setting.FormatDuration(minApplyDelay))
	}
}

// checkSinkIndex checks only the collections with an entry. The documents of other collections are
// written to the default sink.
func checkSinkIndex(c *Config, f *checker, s namedSink) {
	if strings.Contains(s.Index, "{collection}") || s.Index == "" && !s.linked {
		return
	}
	if s.Index == "" && s.kind.NeedsIndex {
		f.fault(s.path+".index", nil, "is missing: without it, a message could choose an index that is not lull's",
			"write lull-{collection}; or {collection}, the earlier default, if this stack has documents in such indices")
		return
	}
	var users []string
	for _, collection := range c.CollectionsOf(s.name) {
		users = append(users, printable(string(collection)))
	}
	if len(users) > 1 {
		f.fault(s.path+".index", s.Index, "is one index for the collections "+strings.Join(users, ", "),
			"put {collection} into the name, such as "+s.Index+"-{collection}")
	}
}
