// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// maxInputs bounds the inputs of an enricher.
const maxInputs = 20

// enrichRules check the enrichers of collections.
var enrichRules = []Rule{
	{
		"enrich-where",
		"An enricher has the address that its kind needs. It uses encryption, except to hosts in allowPrivate.",
		each((*Config).namedEnrichers, checkEnrichWhere),
	},
	{
		"enrich-inputs",
		"An enricher gets at least one part of the document, and at most 20.",
		each((*Config).namedEnrichers, checkEnrichInputs),
	},
	{
		"enrich-time",
		"enrich.timeout + the sink deadline + 2s < Ti: a claimed document can be enriched, written and committed.",
		each((*Config).namedEnrichers, checkEnrichTime),
	},
	{
		"enrich-outage", "With tableOutage: open, documents cannot be enriched.",
		each((*Config).namedEnrichers, checkEnrichOutage),
	},
}

// namedEnrich is an enricher and the path of its setting.
type namedEnrich struct {
	Enrich
	path string
}

// namedEnrichers returns every enricher, in the order of the collections' names.
func (c *Config) namedEnrichers() (all []namedEnrich) {
	for _, name := range slices.Sorted(maps.Keys(c.Collections)) {
		if e := c.Collections[name].Enrich; e != nil {
			all = append(all, namedEnrich{*e, "collections." + printable(name) + ".enrich"})
		}
	}
	return all
}

func checkEnrichWhere(_ *Config, f *checker, e namedEnrich) {
	for _, o := range []struct {
		name, value string
		kind        EnrichKind
	}{
		{"url", e.URL, EnrichHTTP},
		{"headers.secretARN", e.Headers.SecretARN, EnrichHTTP},
		{"headers.env", e.Headers.Env, EnrichHTTP},
		{"functionARN", e.FunctionARN, EnrichLambda},
		{"allowPrivate", strings.Join(e.AllowPrivate, ", "), EnrichHTTP},
	} {
		if e.Kind != o.kind {
			f.ignored(e.path, o.name, o.value, string(o.kind))
		}
	}
	if e.Headers.SecretARN != "" && e.Headers.Env != "" {
		f.fault(e.path+".headers.env", e.Headers.Env, "cannot be used together with headers.secretARN",
			"remove one of the two")
	}
	switch {
	case e.Kind == EnrichLambda && e.FunctionARN == "":
		f.fault(e.path+".functionARN", nil, "is missing", "write the ARN of the function, with its alias if it has one")
	case e.Kind == EnrichHTTP:
		checkEnrichURL(f, e)
	}
}

// checkEnrichURL refuses secrets in the address, because they would reach logs. It also refuses an
// unencrypted connection to a host that allowPrivate does not name.
func checkEnrichURL(f *checker, e namedEnrich) {
	u, err := url.Parse(e.URL)
	switch {
	case e.URL == "":
		f.fault(e.path+".url", nil, "is missing", "write an address such as https://enrich.example.org/v1")
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		f.fault(e.path+".url", e.URL, "is not an address with https or http",
			"write an address such as https://enrich.example.org/v1")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		f.fault(e.path+".url", nil, "has a user, a query or a fragment, which would reach logs",
			"remove what follows the path, and put credentials into "+e.path+".headers.secretARN")
	case !e.private(u.Hostname()) && u.Scheme != "https":
		f.fault(e.path+".url", e.URL, "would send documents unencrypted",
			"write https, or add its host to "+e.path+".allowPrivate")
	case !e.private(u.Hostname()) && numbered(u.Hostname()):
		f.fault(e.path+".url", e.URL, "is an address, or this machine", "add its host to "+e.path+".allowPrivate")
	}
}

func (e Enrich) private(host string) bool {
	return slices.ContainsFunc(e.AllowPrivate, func(p string) bool { return strings.EqualFold(p, host) })
}

func numbered(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func checkEnrichInputs(_ *Config, f *checker, e namedEnrich) {
	switch n := len(e.Inputs); {
	case n == 0:
		f.fault(e.path+".inputs", nil, "is missing", "list JSON pointers such as /title")
	case n > maxInputs:
		f.fault(e.path+".inputs", nil, fmt.Sprintf("has %d pointers", n), fmt.Sprintf("name at most %d", maxInputs))
	}
}

// checkEnrichTime checks that an invocation has time for one request to the enricher and one call
// to the sink.
func checkEnrichTime(c *Config, f *checker, e namedEnrich) {
	checkTurn(c, f, e.path+".timeout", e.Timeout, 0)
}

func checkEnrichOutage(c *Config, f *checker, e namedEnrich) {
	if c.TableOutage == TableOutageOpen {
		f.fault(e.path, nil, "cannot be used with tableOutage: open, which writes documents at once, without enrichment",
			"set tableOutage to closed, or remove it")
	}
}
