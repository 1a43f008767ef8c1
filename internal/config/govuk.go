package config

import "slices"

// GOV.UK's own lists: the document types that its search does not index, and the paths that it
// indexes all the same.
var (
	govukIgnoreTypes = []string{
		"completed_transaction", "email_alert_signup", "embassies_index", "facet", "facet_group", "facet_value",
		"fields_of_operation", "finder_email_signup", "government", "historic_appointment", "historic_appointments",
		"homepage",
		"national", "need", "official", "policy_area", "search", "service_sign_in", "services_and_information",
		"special_route",
		"taxon", "world_index", "worldwide_office",
	}
	govukIgnorePrefixes = []string{"content_block", "placeholder"}
	govukOverridePaths  = []string{
		"/world/*", "/cost-of-living", "/help", "/help/cookies", "/find-local-council", "/contact", "/sign-in",
	}
	govukLocales = []string{"en"}
)

// complete fills in GOV.UK's own lists where a list is nil. An empty list stays empty: it means
// none.
func (g Govuk) complete() Govuk {
	fill(&g.IgnoreTypes, govukIgnoreTypes)
	fill(&g.IgnorePrefixes, govukIgnorePrefixes)
	fill(&g.OverridePaths, govukOverridePaths)
	fill(&g.Locales, govukLocales)
	return g
}

func fill(list *[]string, with []string) {
	if *list == nil {
		*list = slices.Clone(with)
	}
}
