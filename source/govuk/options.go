// SPDX-License-Identifier: Apache-2.0

package govuk

import (
	"regexp"

	"github.com/lullhq/lull/setting"
	"github.com/lullhq/lull/source"
)

// Options are the options of the kind govuk, under sources.<name>.govuk.
type Options struct {
	Govuk Lists `json:"govuk"`
}

// Lists says which messages are indexed. An empty list has no entries, and nil means the list of
// GOV.UK.
type Lists struct {
	// IgnoreTypes are document types. lull deletes a document of such a type, unless its path is in
	// OverridePaths.
	IgnoreTypes []string `json:"ignoreTypes"`
	// IgnorePrefixes are prefixes of document types, which are ignored in the same way.
	IgnorePrefixes []string `json:"ignorePrefixes"`
	// OverridePaths are base paths that are indexed even if their type is ignored. The segment *
	// matches any one segment.
	OverridePaths []string `json:"overridePaths"`
	// Locales are the locales to index. Messages in other locales are skipped. A message without a
	// locale counts as en. Each translation is a separate document. Its id is the content_id for
	// the first locale, and the content_id with the locale for every other locale.
	Locales []string `json:"locales"`
}

// defaults are the lists of GOV.UK: the document types that its search ignores, and the paths that
// it indexes although their type is ignored.
var defaults = Options{Lists{
	IgnoreTypes: []string{
		"completed_transaction", "email_alert_signup", "embassies_index", "facet", "facet_group", "facet_value",
		"fields_of_operation", "finder_email_signup", "government", "historic_appointment", "historic_appointments",
		"homepage", "national", "need", "official", "policy_area", "search", "service_sign_in", "services_and_information",
		"special_route", "taxon", "world_index", "worldwide_office",
	},
	IgnorePrefixes: []string{"content_block", "placeholder"},
	OverridePaths: []string{
		"/world/*", "/cost-of-living", "/help", "/help/cookies", "/find-local-council", "/contact", "/sign-in",
	},
	Locales: []string{"en"},
}}

func (l Lists) complete() Lists {
	own := defaults.Govuk
	for _, list := range []struct{ of, otherwise *[]string }{
		{&l.IgnoreTypes, &own.IgnoreTypes},
		{&l.IgnorePrefixes, &own.IgnorePrefixes},
		{&l.OverridePaths, &own.OverridePaths},
		{&l.Locales, &own.Locales},
	} {
		if *list.of == nil {
			*list.of = *list.otherwise
		}
	}
	return l
}

var (
	wordPattern   = regexp.MustCompile(`^\S+$`)
	pathPattern   = regexp.MustCompile(`^/\S*$`)
	localePattern = regexp.MustCompile(`^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)
)

func init() {
	source.Register(source.Kind{
		Kind: setting.Kind{
			Name: "govuk", Doc: "GOV.UK's publishing messages.", Options: defaults,
			Settings: []setting.Setting{
				setting.List("govuk.ignoreTypes", wordPattern, "a document type",
					"Document types that are deleted.").Otherwise("GOV.UK's own"),
				setting.List("govuk.ignorePrefixes", wordPattern, "the beginning of a document type",
					"Document types that are deleted, by prefix.").Otherwise("content_block, placeholder"),
				setting.List("govuk.overridePaths", pathPattern, "a path such as /help or /world/*",
					"Paths that are indexed with any document type; * matches one segment.").Otherwise("GOV.UK's own"),
				setting.List("govuk.locales", localePattern, "a locale such as en",
					"The locales that are indexed. A document's id is the content_id for the first one, and "+
						"content_id:LOCALE for each other one. So add locales at the end: then the ids do not "+
						"change.").Otherwise("en"),
			},
		},
		Class: source.ClassInt, Versioned: true, OwnDocument: true,
		New:     newFormat,
		Example: example,
	})
}
