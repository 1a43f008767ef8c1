// SPDX-License-Identifier: Apache-2.0

package event

import (
	"slices"
	"strings"
)

// Names of the attributes and headers with which publishers describe a body.
var (
	contentTypeNames = []string{"content_type", "content-type", "contentType", "Content-Type"}
	typeNames        = []string{"event_type", "event-type", "eventType", "type"}
	routingKeyNames  = []string{"routing_key", "routing-key", "routingKey", "x-routing-key"}
)

// runName is the header inside an envelope that names the resync run.
const runName = "resyncrun"

// metaNames lists all names to look for inside an envelope, so that one pass finds them.
var metaNames = slices.Concat(contentTypeNames, typeNames, routingKeyNames, []string{runName})

// MetaOf reads the facts about the body from attributes of the message. SNS with raw delivery turns
// its attributes into these. MetaOf reads no resync run: the run is part of the order key, which
// must come from the body alone.
func MetaOf(attributes map[string]Attribute) Meta {
	if len(attributes) == 0 {
		return Meta{}
	}
	m := metaOf(func(name string) string { return attributes[name].String })
	m.Run = ""
	return m
}

// metaOf reads the facts about the body from names and values inside an envelope.
func metaOf(get func(name string) string) Meta {
	return Meta{
		ContentType: firstOf(contentTypeNames, get),
		Type:        firstOf(typeNames, get),
		RoutingKey:  firstOf(routingKeyNames, get),
		Run:         strings.TrimSpace(get(runName)),
	}
}

func firstOf(names []string, get func(string) string) string {
	for _, name := range names {
		if v := get(name); v != "" {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
