package event

import "github.com/lullhq/lull/internal/queue"

// MetaOf reads what attributes of the message say beside the body: SNS with raw delivery turns its
// own into these. A resync run is not among them, because it is part of the order key, which comes
// from the body alone.
func MetaOf(attributes map[string]queue.Attribute) Meta {
	if len(attributes) == 0 {
		return Meta{}
	}
	get := func(name string) string { return attributes[name].String }
	return Meta{
		ContentType: firstOf(contentTypeNames, get),
		Type:        firstOf(typeNames, get),
		RoutingKey:  firstOf(routingKeyNames, get),
	}
}
