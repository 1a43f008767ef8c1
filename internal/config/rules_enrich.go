package config

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxInputs bounds the inputs of an enricher.
const maxInputs = 20

// enrichRules are about the enrichers of collections.
var enrichRules = []Rule{
	{
		"enrich-where", "An enricher has the address that its kind needs, encrypted unless its host is named as private.",
		checkEnrichWhere,
	},
	{"enrich-inputs", "An enricher gets at least one part of the document, and at most 20.", checkEnrichInputs},
	{
		"enrich-time",
		"enrich.timeout + the sink deadline + 2s < Ti: what was claimed can be enriched, written and committed.",
		checkEnrichTime,
	},
	{
		"enrich-outage", "Where the table's outage is open, documents are written at once, so they cannot be enriched.",
		checkEnrichOutage,
	},
}

// eachEnrich calls check for every enricher, with its path.
func eachEnrich(c *Config, check func(path string, e Enrich)) {
	for _, name := range slices.Sorted(maps.Keys(c.Collections)) {
		if e := c.Collections[name].Enrich; e != nil {
			check("collections."+printable(name)+".enrich", *e)
		}
	}
}

func checkEnrichWhere(c *Config, f *checker) {
	eachEnrich(c, func(path string, e Enrich) {
		ignored := func(setting, value string, kind EnrichKind) {
			if value != "" && e.Kind != kind {
				f.fault(path+"."+setting, value, "would be ignored: it belongs to the kind "+string(kind),
					"remove it, or set "+path+".kind to "+string(kind))
			}
		}
		ignored("url", e.URL, EnrichHTTP)
		ignored("headers.secretARN", e.Headers.SecretARN, EnrichHTTP)
		ignored("headers.env", e.Headers.Env, EnrichHTTP)
		ignored("functionARN", e.FunctionARN, EnrichLambda)
		if len(e.AllowPrivate) > 0 {
			ignored("allowPrivate[0]", e.AllowPrivate[0], EnrichHTTP)
		}
		if e.Headers.SecretARN != "" && e.Headers.Env != "" {
			f.fault(path+".headers.env", e.Headers.Env, "stands beside headers.secretARN: only one of them is read",
				"remove one of the two")
		}
		switch {
		case e.Kind == EnrichLambda && e.FunctionARN == "":
			f.fault(
				path+".functionARN",
				nil,
				"is missing",
				"write the ARN of the function, with its alias if it has one",
			)
		case e.Kind == EnrichHTTP:
			checkEnrichURL(f, path, e)
		}
	})
}

// checkEnrichURL refuses secrets in the address, which would reach logs, and plain text to a host
// that is not named as private.
func checkEnrichURL(f *checker, path string, e Enrich) {
	u, err := url.Parse(e.URL)
	switch {
	case e.URL == "":
		f.fault(path+".url", nil, "is missing", "write an address such as https://enrich.example.org/v1")
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		f.fault(path+".url", e.URL, "is not an address with https or http",
			"write an address such as https://enrich.example.org/v1")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		f.fault(path+".url", nil, "has a user, a query or a fragment, which would reach logs",
			"end it after the path, and put credentials into "+path+".headers.secretARN")
	case !e.private(u.Hostname()) && u.Scheme != "https":
		f.fault(path+".url", e.URL, "would send documents unencrypted",
			"write https, or name its host under "+path+".allowPrivate")
	case !e.private(u.Hostname()) && numbered(u.Hostname()):
		f.fault(path+".url", e.URL, "is an address, or this machine", "name its host under "+path+".allowPrivate")
	}
}

func (e Enrich) private(host string) bool {
	return slices.ContainsFunc(e.AllowPrivate, func(p string) bool { return strings.EqualFold(p, host) })
}

func numbered(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func checkEnrichInputs(c *Config, f *checker) {
	eachEnrich(c, func(path string, e Enrich) {
		switch n := len(e.Inputs); {
		case n == 0:
			f.fault(path+".inputs", nil, "is missing", "list JSON pointers such as /title")
		case n > maxInputs:
			f.fault(path+".inputs", nil, fmt.Sprintf("has %d pointers", n), fmt.Sprintf("name at most %d", maxInputs))
		}
	})
}

// checkEnrichTime: one request for more fields and one call to the sink must end in an invocation.
func checkEnrichTime(c *Config, f *checker) {
	eachEnrich(c, func(path string, e Enrich) {
		rest := c.Index.SinkDeadline + sinkMargin
		if e.Timeout+rest < c.Index.Timeout {
			return
		}
		f.fault(path+".timeout", e.Timeout, fmt.Sprintf(
			"+ the index.sinkDeadline of %s + 2s is not less than the index.timeout of %s", words(c.Index.SinkDeadline),
			words(c.Index.Timeout)),
			fmt.Sprintf("lower it below %s, lower index.sinkDeadline, or raise index.timeout to at least %s",
				words(max(c.Index.Timeout-rest, 0)), words(ceil(e.Timeout+rest+time.Millisecond, time.Second))))
	})
}

func checkEnrichOutage(c *Config, f *checker) {
	if c.TableOutage != TableOutageOpen {
		return
	}
	eachEnrich(c, func(path string, _ Enrich) {
		f.fault(path, nil, "cannot be kept with tableOutage: open, which writes documents at once and as they are",
			"set tableOutage to closed, or remove it")
	})
}
